# Types for the compiled form of encoder.py.
cimport cython


cdef _put_head(bytearray out, int major, object n)

@cython.locals(size=Py_ssize_t)
cdef _put(bytearray out, object obj, int depth)

cdef _put_map(bytearray out, object obj, int depth)

cdef bytes _pack_float(object value)
