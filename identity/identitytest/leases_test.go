// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest_test

import (
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
	"github.com/belayproject/belay/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var (
	_ identity.LeaseClient  = (*identitytest.Client)(nil)
	_ identity.LeaseWatcher = (*identitytest.Client)(nil)
	_ identity.Clock        = (*identitytest.Clock)(nil)
)

// TestServerInMemoryFollowsTheRules is R-ID-02 of the fake: Leases and nothing else, by the server's rules.
func TestServerInMemoryFollowsTheRules(t *testing.T) {
	identitytest.TestLeases(t, identitytest.LeaseBed{Leases: func(*testing.T) identity.LeaseClient {
		return identitytest.NewServer().Client("default", "test", nil)
	}})
}

// TestAPIServerFollowsTheRules holds the rules against the real server.
func TestAPIServerFollowsTheRules(t *testing.T) {
	env := shared.Env(t)
	client := kubernetes.NewForConfigOrDie(env.Config())
	identitytest.TestLeases(t, identitytest.LeaseBed{Leases: func(t *testing.T) identity.LeaseClient {
		return client.CoordinationV1().Leases(env.Namespace(t))
	}})
}
