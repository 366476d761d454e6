# Types for the compiled form of frame.py.
cimport cython


cdef class Framer:
    cdef readonly Py_ssize_t limit
    cdef readonly bint plain_json
    cdef bytes _chunk
    cdef Py_ssize_t _pos
    cdef bytearray _open
    cdef Py_ssize_t _dropped

    @cython.locals(rest=bytes)
    cpdef feed(self, data)

    @cython.locals(pos=Py_ssize_t, stop=Py_ssize_t, dropped=Py_ssize_t, line=bytes, opened=bytearray, fits=bint)
    cpdef next_event(self)
