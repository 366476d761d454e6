# Types for the compiled form of cbor.py.  Bounds checks stay on: the input is a stranger's.
cimport cython


cdef class _Reader:
    cdef bytes raw
    cdef const unsigned char[::1] data
    cdef Py_ssize_t pos
    cdef Py_ssize_t end
    cdef unsigned long long n

    @cython.locals(start=Py_ssize_t, pos=Py_ssize_t, size=Py_ssize_t, i=Py_ssize_t, major=int, left="unsigned long long",
                   n="unsigned long long")
    cdef int head(self) except -1

    @cython.locals(start=Py_ssize_t, pos=Py_ssize_t, major=int, n="unsigned long long", _="unsigned long long",
                   value=object, result=list, chunk=bytes)
    cdef object item(self, int depth)

    @cython.locals(start=Py_ssize_t, _="unsigned long long", code=bytes, last=bytes, result=dict)
    cdef dict mapping(self, unsigned long long n, int depth)
