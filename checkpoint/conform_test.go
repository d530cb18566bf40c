// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// On the disk in memory a Store keeps the promises that it keeps on real ones: what is found out there holds.
func TestStoreOnDiskInMemoryConforms(t *testing.T) {
	checkpointtest.TestStore(t, func(testing.TB) checkpointtest.Place {
		d := checkpointtest.NewDisk()
		return func(t testing.TB) checkpointtest.Store {
			s, err := checkpoint.OpenOnDisk(d, checkpoint.OnDisk{Room: 1 << 30}, "/state", checkpoint.Options{MachineID: "test machine"})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
