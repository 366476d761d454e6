// What the module time asks of the port.
#include "py/mphal.h"
#include "py/obj.h"
#include "shared/timeutils/timeutils.h"

enum { BEGINS_S = 1609459200 }; // 2021: a clock that nobody has set

static mp_obj_t mp_time_time_get(void) {
    return mp_obj_new_int_from_uint(BEGINS_S + mp_hal_ticks_ms() / 1000);
}

static mp_obj_t mp_time_localtime_get(void) {
    timeutils_struct_time_t tm;
    timeutils_seconds_since_epoch_to_struct_time(BEGINS_S + mp_hal_ticks_ms() / 1000, &tm);
    const mp_int_t parts[] = { tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                               tm.tm_wday, tm.tm_yday };
    mp_obj_t found[MP_ARRAY_SIZE(parts)];
    for (size_t at = 0; at < MP_ARRAY_SIZE(parts); at++) {
        found[at] = mp_obj_new_int(parts[at]);
    }
    return mp_obj_new_tuple(MP_ARRAY_SIZE(parts), found);
}
