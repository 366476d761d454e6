# Types for schema.py under Cython.
cimport cython

cdef int OBJECT, REQUIRED, MIN_MEMBERS, MAX_MEMBERS, ITEMS, MIN_ITEMS, MAX_ITEMS
cdef int MATCH, MAX_LENGTH, MINIMUM, MAXIMUM, ABOVE, MULTIPLE, ENUM
cdef Py_ssize_t _COUNT, _OTHERS, _PATTERNS, _FIRST_NAME, _REST, _AUTOMATON
cdef int _STRING, _INTEGER, _FRACTION, _OBJECT, _ARRAY, _ANYTHING
cdef dict _KINDS
cdef bytes _ABOUT

@cython.final
cdef class _Run:
    cdef readonly list table
    cdef object automata
    cdef int steps
    cdef public int nested
    cdef object rare, search

    @cython.locals(kind=int, op=int, at=Py_ssize_t, found=Py_ssize_t, nth=Py_ssize_t)
    cpdef node(self, node, value, int depth)

    cdef rest(self, int op, arg, value, int kind, int depth)

    cpdef bint matches(self, int index, str text) except -1

@cython.locals(size=Py_ssize_t)
cdef bint _holds(int op, arg, value) except -1
