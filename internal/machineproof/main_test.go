// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineproof_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/kubeconfig"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
	"github.com/belayproject/belay/machine/provider/providertest"
)

var shared testenv.Shared

// A process with these in its environment is a controller.
const (
	kubeconfigEnv = "BELAY_MACHINEPROOF_KUBECONFIG"
	namespaceEnv  = "BELAY_MACHINEPROOF_NAMESPACE"
	fakeEnv       = "BELAY_MACHINEPROOF_FAKE"  // the URL of the cloud
	localEnv      = "BELAY_MACHINEPROOF_LOCAL" // the directory of local machines
)

func TestMain(m *testing.M) {
	if os.Getenv(kubeconfigEnv) != "" {
		if err := control(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(shared.Main(m))
}

// control is a controller until it is killed.
func control(ctx context.Context) error {
	config, err := kubeconfig.Read(os.Getenv(kubeconfigEnv))
	if err != nil {
		return err
	}
	config.QPS = -1
	core, objects := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	p, err := open(ctx)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(core, 0)
	nodes, err := kube.NewNodes(core, factory.Core().V1().Nodes().Informer(), nil)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	machines, err := kube.NewMachines(objects, os.Getenv(namespaceEnv))
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{
		Cluster: os.Getenv(namespaceEnv), Machines: machines, Nodes: nodes, Provider: p, Undrained: true, ShowEvery: time.Second,
	})
	if err != nil {
		return err
	}
	go func() { // whoever kills it waits for that: one that has never worked proves nothing
		for tick := time.NewTicker(10 * time.Millisecond); !machines.Synced() || !nodes.Synced(); {
			<-tick.C
		}
		fmt.Println("ready")
	}()
	return kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes, SurveyEvery: time.Second})
}

func open(ctx context.Context) (provider.Provider, error) {
	if url := os.Getenv(fakeEnv); url != "" {
		return providertest.New(providertest.Options{URL: url})
	}
	return local.New(ctx, local.Options{Root: os.Getenv(localEnv)})
}
