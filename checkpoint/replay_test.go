// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"os"
	"testing"
)

// TestOldRecordIsNotAcceptedAsNewer: whoever may write into the store puts records back that were valid once, under their own names and under those of
// later generations, a thousand times: none is taken for newer than what was written last. S-CS-09.
func TestOldRecordIsNotAcceptedAsNewer(t *testing.T) {
	dir := memDir(t)
	o := bare()
	s := openStore(t, dir, o)
	var old [][]byte
	for gen := range uint64(50) {
		mustPut(t, s, "a", fmt.Sprint("payload ", gen+1))
		old = append(old, content(t, place(dir, "a", gen+1)))
	}
	mustClose(t, s)
	replayed, accepted := 0, 0
	for ahead := range uint64(21) {
		for i, was := range old {
			if i == len(old)-1 {
				continue // the newest itself is what is to be read
			}
			gen := 51 + ahead
			if ahead == 0 {
				gen = uint64(i + 1) // its own name
			}
			path := place(dir, "a", gen)
			kept, err := os.ReadFile(path)
			replace(t, path, was)
			replayed++
			r := openReader(t, dir)
			if rec, err := r.Get(t.Context(), "a"); err != nil || string(rec) != "payload 50" {
				accepted++
				t.Errorf("S-CS-09: record %d replayed as generation %d: got %q, %v, want payload 50", i+1, gen, rec, err)
			}
			if err == nil {
				replace(t, path, kept)
			} else if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d replayed, %d accepted as newer", replayed, accepted)
}
