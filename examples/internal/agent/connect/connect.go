// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"path/filepath"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/agent/update"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// lockFile is the name in the state directory of the file that shows that the agent before is gone.
const lockFile = "lease.lock"

// Part is the node's part in rollouts as the flags say. told may be nil: see update.Options. Nothing is connected yet.
func Part(s *settings.Update, disk nodeagent.Disk, u nodeagent.Updater, told func(error)) (*update.Part, error) {
	config, err := connection(s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return update.New(update.Options{
		Node: s.NodeName, Config: config, Disk: disk, Updater: u,
		VerifyFor: s.VerifyFor, VerifyEvery: s.VerifyEvery, VerifyWithin: s.VerifyWithin, ApplyTimeout: s.ApplyTimeout, RevertBroken: s.RevertBroken,
		LeaseNamespace: s.LeaseNamespace, Lease: s.Lease, LockFile: filepath.Join(s.StateDir, lockFile), Guard: s.Guard,
		RetryMin: s.RetryMin, RetryMax: s.RetryMax, Told: told,
	})
}

// Finder says which ConfigMap a Revision stands for.
func Finder(s *settings.Run) (configsync.Finder, error) {
	client, err := Client(s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return update.Revisions(client), nil
}

// Client is that of the API server which a kubeconfig names. Nothing is connected yet.
func Client(kubeconfig string) (dynamic.Interface, error) {
	config, err := connection(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kube.NewClient(config, nil)
}

// NodeClient is that of the probes of a node. Unlike [Client] it has no bound on what it reads: a list of pods may be
// long.
func NodeClient(kubeconfig string) (dynamic.Interface, error) {
	config, err := connection(kubeconfig)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// connection is that of a kubeconfig; empty means the pod that this runs in.
func connection(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, &settings.FlagError{Flag: "kubeconfig", Value: kubeconfig, Want: "must be a kubeconfig: " + err.Error()}
	}
	config.UserAgent = "belay-agent/" + settings.Version()
	return config, nil
}
