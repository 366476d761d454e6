// What MicroPython's port to QEMU lacks of a board: a flash, a clock, and a console that says whether
// something has been typed.
#include <string.h>

#include "board.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "py/stream.h"

// -- the flash: blocks at DISK, where QEMU's loader puts a littlefs

enum { BLOCK = 4096, BLOCKS = 352, ERASED = 0xff };

static uint8_t *place(mp_obj_t block, mp_obj_t offset) {
    return (uint8_t *)DISK + mp_obj_get_int(block) * BLOCK + mp_obj_get_int(offset);
}

static mp_obj_t make(const mp_obj_type_t *type, size_t count, size_t named, const mp_obj_t *all) {
    return MP_OBJ_FROM_PTR(mp_obj_malloc(mp_obj_base_t, type));
}

static mp_obj_t move(size_t count, const mp_obj_t *all, bool writes) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(all[2], &buffer, writes ? MP_BUFFER_READ : MP_BUFFER_WRITE);
    uint8_t *at = place(all[1], count > 3 ? all[3] : MP_OBJ_NEW_SMALL_INT(0));
    memcpy(writes ? at : buffer.buf, writes ? buffer.buf : at, buffer.len);
    return mp_const_none;
}

static mp_obj_t readblocks(size_t count, const mp_obj_t *all) {
    return move(count, all, false);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(readblocks_obj, 3, 4, readblocks);

static mp_obj_t writeblocks(size_t count, const mp_obj_t *all) {
    return move(count, all, true);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(writeblocks_obj, 3, 4, writeblocks);

static mp_obj_t ioctl(mp_obj_t self, mp_obj_t command, mp_obj_t block) {
    mp_int_t what = mp_obj_get_int(command);
    if (what == 6) {
        memset(place(block, MP_OBJ_NEW_SMALL_INT(0)), ERASED, BLOCK);
    }
    return MP_OBJ_NEW_SMALL_INT(what == 4 ? BLOCKS : what == 5 ? BLOCK : 0);
}
static MP_DEFINE_CONST_FUN_OBJ_3(ioctl_obj, ioctl);

static const mp_rom_map_elem_t methods[] = {
    { MP_ROM_QSTR(MP_QSTR_readblocks), MP_ROM_PTR(&readblocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_writeblocks), MP_ROM_PTR(&writeblocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_ioctl), MP_ROM_PTR(&ioctl_obj) },
};
static MP_DEFINE_CONST_DICT(methods_dict, methods);
static MP_DEFINE_CONST_OBJ_TYPE(
    disk_type, MP_QSTR_Disk, MP_TYPE_FLAG_NONE, make_new, make, locals_dict, &methods_dict);

static const mp_rom_map_elem_t names[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_disk) },
    { MP_ROM_QSTR(MP_QSTR_Disk), MP_ROM_PTR(&disk_type) },
};
static MP_DEFINE_CONST_DICT(names_dict, names);
const mp_obj_module_t disk_module = {
    .base = { &mp_type_module }, .globals = (mp_obj_dict_t *)&names_dict
};
MP_REGISTER_MODULE(MP_QSTR_disk, disk_module);

// -- the clock: a timer that counts down 25 times in a microsecond

enum { PER_US = 25 };
static volatile uint32_t *const TIMER = (volatile uint32_t *)0x40000000;

static uint64_t ticks(void) {
    static uint64_t total;
    static uint32_t last;
    if (!TIMER[0]) {
        TIMER[2] = TIMER[1] = last = UINT32_MAX;
        TIMER[0] = 1;
    }
    uint32_t now = TIMER[1];
    total += (uint32_t)(last - now);
    last = now;
    return total;
}

mp_uint_t mp_hal_ticks_ms(void) {
    return ticks() * (SPEED ? SPEED : 1) / (1000 * PER_US);
}

mp_uint_t mp_hal_ticks_us(void) {
    return ticks() / PER_US;
}

mp_uint_t mp_hal_ticks_cpu(void) {
    return ticks();
}

uint64_t mp_hal_time_ns(void) {
    return ticks() * 1000 / PER_US;
}

void mp_hal_delay_us(mp_uint_t us) {
    uint64_t end = ticks() + (uint64_t)us * PER_US;
    while (ticks() < end) {
    }
}

void mp_hal_delay_ms(mp_uint_t ms) {
    uint64_t end = ticks() + (uint64_t)ms * 1000 * PER_US;
    while (ticks() < end) {
        mp_handle_pending(true);
    }
}

// -- the console

uintptr_t mp_hal_stdio_poll(uintptr_t asked) {
    const uint32_t uart_state = *(volatile uint32_t *)0x40004004, received = 2;
    return (uart_state & received ? asked & MP_STREAM_POLL_RD : 0) | (asked & MP_STREAM_POLL_WR);
}
