// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest_test

import (
	"errors"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

var (
	_ checkpointtest.Store = (*checkpoint.Store)(nil)
	_ checkpointtest.Store = (*checkpointtest.Memory)(nil)
)

func TestDiskStoreConforms(t *testing.T) {
	checkpointtest.TestStore(t, func(t testing.TB) checkpointtest.Place {
		dir := t.TempDir()
		return func(t testing.TB) checkpointtest.Store {
			s, err := checkpoint.Open(dir, checkpoint.Options{MachineID: "test machine"})
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("the disk store does not work here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

func TestMemoryStoreConforms(t *testing.T) {
	checkpointtest.TestStore(t, func(testing.TB) checkpointtest.Place {
		m := &checkpointtest.Memory{}
		return func(testing.TB) checkpointtest.Store {
			m.Reopen()
			return m
		}
	})
}
