// What the module os asks of the port.
#include "py/obj.h"

static mp_obj_t mp_os_urandom(mp_obj_t count) {
    static uint32_t state = 12345; // the same in each run
    vstr_t bytes;
    vstr_init_len(&bytes, mp_obj_get_int(count));
    for (size_t at = 0; at < bytes.len; at++) {
        state = state * 1664525 + 1013904223;
        bytes.buf[at] = state >> 24;
    }
    return mp_obj_new_bytes_from_vstr(&bytes);
}
static MP_DEFINE_CONST_FUN_OBJ_1(mp_os_urandom_obj, mp_os_urandom);
