import sys

import disk
import vfs

vfs.mount(vfs.VfsLfs2(disk.Disk(), progsize=256), "/")
sys.path.append("/lib")
