// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest_test

import (
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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

// TestIdentityOnTheServerInMemory is the suite of members, views and collectors in memory.
func TestIdentityOnTheServerInMemory(t *testing.T) {
	identitytest.TestIdentity(t, identitytest.Bed{Bubble: true, Place: func(*testing.T) identitytest.Place {
		server := identitytest.NewServer()
		return identitytest.Place{Namespace: "home", Abroad: "abroad", Client: func(namespace string) identitytest.Leases {
			return server.Client(namespace, "", nil)
		}}
	}})
}

// TestIdentityOnTheAPIServer is the same suite on the real server: R-ID-05, R-ID-06, R-ID-07, R-ID-09, R-ID-10, R-ID-11, R-ID-13, R-ID-14, R-ID-16,
// R-ID-19, R-ID-20.
func TestIdentityOnTheAPIServer(t *testing.T) {
	env := shared.Env(t)
	identitytest.TestIdentity(t, identitytest.Bed{Place: func(t *testing.T) identitytest.Place {
		return identitytest.Place{Namespace: env.Namespace(t), Abroad: env.Namespace(t), Client: func(namespace string) identitytest.Leases {
			config := rest.CopyConfig(env.Config())
			config.QPS = -1
			return kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(namespace)
		}}
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
