// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/drain/draintest"
)

func TestTheDrainerKeepsItsPromiseInMemory(t *testing.T) {
	draintest.TestDrainer(t, draintest.NewBed, synctest.Test)
}

func TestTheDrainerSurvivesEveryFault(t *testing.T) {
	draintest.TestDrainerFaults(t, draintest.NewBed, synctest.Test)
}
