# Types for the compiled form of cbor.py.  Bounds checks stay on: the input is a stranger's.
cimport cython


cdef class _Reader:
    cdef bytes raw
    cdef Py_ssize_t pos
    cdef Py_ssize_t end
    cdef unsigned long long n
    cdef unsigned long long more
    cdef bytes last

    @cython.locals(start=Py_ssize_t, pos=Py_ssize_t, size=Py_ssize_t, i=Py_ssize_t, major=int, left="unsigned long long",
                   n="unsigned long long")
    cdef int head(self) except -1

    @cython.locals(start=Py_ssize_t, pos=Py_ssize_t, major=int, n="unsigned long long", value=object, chunk=bytes)
    cdef object leaf(self, int depth)

    @cython.locals(left="unsigned long long", opened=list, is_map=bint)
    cdef object item(self, int depth)

    @cython.locals(start=Py_ssize_t, code=bytes)
    cdef object key(self)
