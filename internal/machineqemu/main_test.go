// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machineqemu_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/machineqemu"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/testenv/kubeconfig"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
)

var shared testenv.Shared

// childEnv is what a child of the test does, as JSON.
const childEnv = "BELAY_MACHINEQEMU_TEST"

// An order is what a child of the test does: it makes one call of the provider, or is a controller until it is killed.
type order struct {
	Options    machineqemu.Options `json:"options"`
	Call       *machinetest.Call   `json:"call,omitempty"`
	Kubeconfig string              `json:"kubeconfig,omitempty"`
	Namespace  string              `json:"namespace,omitempty"`
	Endpoint   string              `json:"endpoint,omitempty"`
}

func TestMain(m *testing.M) {
	text := os.Getenv(childEnv)
	if text == "" {
		os.Exit(shared.Main(m))
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.do(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o order) do(ctx context.Context) error {
	p, err := machineqemu.New(ctx, o.Options)
	if err != nil {
		return err
	}
	if o.Call != nil {
		fmt.Println("ready")
		_ = o.Call.Do(ctx, p) // the one who has ordered it sees what has become of it
		return nil
	}
	return o.control(ctx, p)
}

// control is a controller until it is killed.
func (o order) control(ctx context.Context, p *machineqemu.Provider) error {
	config, err := kubeconfig.Read(o.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	core, objects := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(core, 0)
	nodes, err := kube.NewNodes(core, factory.Core().V1().Nodes().Informer(), nil)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	machines, err := kube.NewMachines(objects, o.Namespace)
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{
		Cluster: o.Namespace, Machines: machines, Nodes: nodes, Provider: p, Secrets: kube.Secrets{Client: core}, Undrained: true,
		Endpoint: o.Endpoint, ShowEvery: time.Second,
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes, SurveyEvery: time.Second})
}

// start starts a child and waits until it is ready.
func (o order) start(t testing.TB, log io.Writer) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), childEnv+"="+string(text)), log
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		_ = cmd.Wait() // it says why in the log
		t.Fatalf("a child did not start: %v", err)
	}
	return cmd
}

// kill ends a child as a crash does.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type images struct {
	byName     map[string]machineqemu.Image
	old, young string
}

// imagesOf makes images of the oldest and the newest kernel, or skips the test where there can be none.
func imagesOf(t *testing.T) images {
	t.Helper()
	machineqemu.Require(t)
	programs, err := binaries.Ensure(t.Context(), os.Stderr, binaries.Guest)
	must(t, err)
	kernels, err := machineqemu.Kernels()
	must(t, err)
	all := images{byName: map[string]machineqemu.Image{}, old: kernels[0].Release, young: kernels[len(kernels)-1].Release}
	for _, name := range []int{0, len(kernels) - 1} {
		k := kernels[name]
		all.byName[k.Release], err = machineqemu.MakeImage(k, programs[binaries.Guest])
		must(t, err)
	}
	return all
}
