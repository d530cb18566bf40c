#!/bin/sh
# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# One virtual machine, in the directory of a machine of package local: makes its disks, hands over its settings, and keeps it switched on. A qemu that was
# killed has had a power cut, and is started again. One that ends by itself was switched off.
set -eu
umask 077

off=
qemu=
trap 'off=1; [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || :' TERM

# The disk with the settings lies among the secrets, as it has them: it goes when they do.
hand_over() {
  mkdir -p bootstrap
  tar --exclude=bootstrap/settings.tar -cf bootstrap/settings.tar machine.json bootstrap
}

# A disk appears as a whole.
make_disk() {
  [ ! -e "$1" ] || return 0
  rm -f "$1.new"
  truncate -s "${DISK_MIB}M" "$1.new"
  mkfs.ext4 -q -F "$1.new"
  sync "$1.new"
  mv "$1.new" "$1"
}

set --
first=
for disk in $DISKS; do
  make_disk "data/$disk/disk.raw"
  first=${first:-$disk}
  set -- "$@" -drive "if=none,id=$disk,format=raw,file=data/$disk/disk.raw" -device "virtio-blk-pci,drive=$disk,serial=$disk"
done

# On a machine that is busy an emulated timer may tick too late for the kernel's check of it, which then hangs or panics: no_timer_check.
while [ -z "$off" ]; do
  hand_over
  echo "belay: power on: $BOOT"
  "$QEMU" -machine q35,accel=tcg -cpu max -smp 1 -m "$MEMORY_MIB" -nodefaults -no-user-config -display none -serial stdio \
    -kernel "$KERNEL" -initrd "$INITRD" \
    -append "console=ttyS0 quiet panic=1 no_timer_check belay.provider-id=$BELAY_PROVIDER_ID belay.disk=$first" \
    -netdev user,id=net -device virtio-net-pci,netdev=net,romfile= \
    -drive if=none,id=settings,format=raw,readonly=on,file=bootstrap/settings.tar -device virtio-blk-pci,drive=settings,serial=settings \
    "$@" </dev/null &
  qemu=$!
  status=0
  wait "$qemu" || status=$?
  while kill -0 "$qemu" 2>/dev/null; do # a signal has ended the wait
    status=0
    wait "$qemu" || status=$?
  done
  [ "$status" -eq 137 ] || exit "$status"
  echo "belay: power cut"
done
