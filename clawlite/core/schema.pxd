# Types for schema.py under Cython.
cimport cython

cdef int _STRING, _INTEGER, _FRACTION, _OBJECT, _ARRAY, _ANYTHING
cdef dict _KINDS

cdef class _Run:
    cdef list table
    cdef object automata
    cdef int steps, nested

@cython.locals(kind=int, op=int, at=Py_ssize_t)
cdef _node(node, value, _Run run, int depth)


@cython.locals(found=Py_ssize_t, required=Py_ssize_t, at=Py_ssize_t)
cdef _object(list arg, dict value, _Run run, int depth)

@cython.locals(at=Py_ssize_t, matched=bint)
cdef _others(list arg, dict value, _Run run, int depth)

cdef _members(int op, arg, dict value, _Run run, int depth)

@cython.locals(at=Py_ssize_t, last=Py_ssize_t, found=Py_ssize_t)
cdef _array(int op, arg, list value, _Run run, int depth)

cdef _any_kind(int op, arg, value, int kind, _Run run, int depth)

cdef _combined(int op, arg, value, int kind, _Run run, int depth)

@cython.locals(fitting=int, about=int)
cdef _alternatives(int op, list arg, value, int kind, _Run run, int depth)
