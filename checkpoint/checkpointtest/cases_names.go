// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"errors"
	"strings"

	"github.com/belayproject/belay/checkpoint"
)

func listNamesTheDirectory(k *checker) {
	for _, n := range []string{"c", "a", "b.x", "d/2", "d/1", "dd/1", "d.d/1"} {
		k.put(n, "x")
	}
	for range 2 {
		k.wantList("", "a", "b.x", "c")
		k.wantList("d", "d/1", "d/2")
		k.wantList("dd", "dd/1")
		k.wantList("none")
		k.reopen()
	}
	k.delete("d/1")
	k.wantList("d", "d/2")
	for _, dir := range []string{"..", "/", "d/", "a/b", "D", ".", "d/../d"} {
		if _, err := k.List(k.Context(), dir); !errors.Is(err, checkpoint.ErrName) {
			k.fail("List(%q): got %v, want ErrName", dir, err)
		}
	}
}

func namesAreChecked(k *checker) {
	names := []string{
		"", ".", "..", "/", "a/", "/a", "../a", "a/../b", "a/b/c", "a//b", "A", "a b", "a\x00", "a\n", "ä", ".a", "-a", "a..b",
		`a\b`, strings.Repeat("a", 129), "d/" + strings.Repeat("a", 129), "a.0000000000000001/b", strings.Repeat("a/", 5000),
	}
	for _, n := range names {
		_, getErr := k.Get(k.Context(), n)
		_, readErr := k.Read(k.Context(), n)
		putErr, deleteErr := k.Put(k.Context(), n, []byte("x")), k.Delete(k.Context(), n)
		for op, err := range map[string]error{"Get": getErr, "Read": readErr, "Put": putErr, "Delete": deleteErr} {
			if !errors.Is(err, checkpoint.ErrName) {
				k.fail("%s(%.40q): got %v, want ErrName", op, n, err)
			}
		}
	}
	k.wantList("")
	k.wantList("a")
}

func longNamesWork(k *checker) {
	long := strings.Repeat("a", 128)
	names := []string{"0", "a.b", "a-b_c.d", long, long + "/" + long, "v1.2.3/startups"}
	for _, n := range names {
		k.put(n, "of "+n)
	}
	k.reopen()
	for _, n := range names {
		k.want(n, "of "+n)
	}
}

func payloadsAreLimited(k *checker) {
	most := strings.Repeat("x", maxPayload)
	k.put("a", "old")
	for range 2 {
		err := k.Put(k.Context(), "a", []byte(most+"x"))
		if !errors.Is(err, checkpoint.ErrTooLarge) || !errors.Is(err, checkpoint.ErrNotWritten) {
			k.fail("Put of one byte too many: got %v, want ErrTooLarge and ErrNotWritten", err)
		}
		k.want("a", "old")
	}
	k.put("a", most)
	k.want("a", most)
}
