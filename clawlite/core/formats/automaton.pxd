# Types for automaton.py under Cython.  Bounds checks stay on: a damaged table must raise, not read elsewhere.
cimport cython

cdef int _NARROW, _WIDE, _TAIL

@cython.locals(rows=Py_ssize_t, width=Py_ssize_t, form=int, states=int, state=Py_ssize_t, accepting=Py_ssize_t,
               cell=Py_ssize_t, byte=cython.uchar, classes=bytes)
cpdef bint search(bytes table, bytes data) except -1
