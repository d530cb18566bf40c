// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The process works once it holds the Lease, and gives it up at the end: the next one leads at once.
func TestOneAfterTheOtherLeads(t *testing.T) {
	env := shared.Env(t)
	t.Setenv("KUBECONFIG", env.Kubeconfig())
	namespace := env.Namespace(t)
	for range 2 {
		led := false
		err := lead(t.Context(), namespace, func(context.Context) error {
			led = true
			return nil
		})
		if err != nil || !led {
			t.Fatalf("got error %v and led %t, want the work done", err, led)
		}
	}
}
