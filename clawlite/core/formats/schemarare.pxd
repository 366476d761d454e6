# Types for schemarare.py under Cython.
cimport cython
from clawlite.core.formats.schema cimport _Run

cdef int _MAX_DEPTH
cdef int OBJECT, REQUIRED, MIN_MEMBERS, CONTAINS, UNIQUE, MULTIPLE
cdef int ENUM, ALL, ANY, ONE, NOT, IF_THEN
cdef Py_ssize_t _LEAST, _MOST, _NODE, _OTHERS, _PATTERNS, _CONDITION, _THEN, _ELSE

@cython.locals(at=Py_ssize_t, found=Py_ssize_t)
cpdef rare(_Run run, int op, arg, value, int kind, int depth)

@cython.locals(at=Py_ssize_t, matched=bint)
cdef _check_unnamed(_Run run, list arg, dict value, int depth)

cdef _names(_Run run, int op, arg, dict value, int depth)

cdef _check_combined(_Run run, int op, arg, value, int kind, int depth)

@cython.locals(fitting=int, about=int)
cdef _alternatives(_Run run, int op, list arg, value, int kind, int depth)

cdef _key(value, int depth)
