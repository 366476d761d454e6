# Types for Cython alone; policy.py is the whole program.
import cython

cdef Py_ssize_t RULE_ACTION, RULE_RATE, RULE_ROOT

@cython.locals(number=int, rule=list, trace=list, matched=bint, action=int, passed=int)
cpdef tuple decide(image, entry, list paths, used=*, roots=*)

cpdef tuple decide_all(image, list entries, paths, used=*, roots=*)

@cython.locals(found=list, number=int)
cpdef list roots_of(image, list entries)

@cython.locals(other=tuple, action=int, rests=bint)
cpdef tuple strictest(list decisions)

@cython.locals(path=str)
cpdef bint holds(str root, list paths, int action)

@cython.locals(at=int, spent=bint)
cpdef bint applies(list rate, used, int action)

cpdef bint is_within(str path, str root)

@cython.locals(kept=list, part=str)
cpdef object normalise(path, str base=*)

@cython.locals(found=list)
cpdef list paths_of(list names, dict arguments, workspace=*)

cpdef object virtual(path, workspace)
