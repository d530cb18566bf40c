// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
)

const (
	// heartbeat is how often a kubelet writes its Node although nothing has changed, by default; nodeImages is how many images it says it has, at most.
	heartbeat  = 5 * time.Minute
	nodeImages = 50
	// beatingPods is how many pods a node has then.
	beatingPods = 10
)

// beating prints what the controller takes while each node has more pods, and a kubelet that writes its Node.
func (b *bench) beating(ctx context.Context, f *rolloutstage.Fleet, pid int, names []string, settle, window time.Duration) error {
	from := time.Now()
	if err := podsOn(ctx, f, names, fewPods, beatingPods); err != nil {
		return err
	}
	body, err := json.Marshal(imagesPatch(nodeImages))
	if err != nil {
		return err
	}
	if err := each(len(names), func(i int) error { return patchNode(ctx, f, names[i], body) }); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  the nodes have %d pods and %d images after %v\n", beatingPods, nodeImages, time.Since(from).Round(time.Second))
	run, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	beats := 0
	go func() { done <- beat(run, f, names, &beats) }()
	begun := time.Now()
	if !backoff.Sleep(ctx, settle) {
		return ctx.Err()
	}
	s, err := watched(ctx, window, pid)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	about := fmt.Sprintf("in %v with %d nodes of %d pods and %d images each, and %.1f writes of a Node a second",
		window, len(names), beatingPods, nodeImages, float64(beats)/time.Since(begun).Seconds())
	b.Print(runner.Line{
		Name: "F3.beating-resident", Ours: runner.Show(s.most[0].resident) + "MiB",
		More: fmt.Sprintf("the most %s; %s MiB of it anonymous", about, runner.Show(s.most[0].anonymous)),
	})
	b.Print(runner.Line{Name: "F3.beating-idle", Ours: fmt.Sprintf("%.2f%%", 100*s.used[0]), More: "of a processor, " + about})
	return nil
}

// beat writes one Node after another, so that each has its turn once in a heartbeat, until ctx ends. It counts them.
func beat(ctx context.Context, f *rolloutstage.Fleet, names []string, beats *int) error {
	ticker := time.NewTicker(heartbeat / time.Duration(len(names)))
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		body, err := json.Marshal(beatPatch(metav1.Now()))
		if err == nil {
			err = patchNode(ctx, f, names[i%len(names)], body)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("writing a Node as its kubelet does: %w", err)
		}
		*beats++
	}
}

func patchNode(ctx context.Context, f *rolloutstage.Fleet, name string, body []byte) error {
	_, err := f.Core.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}

// A statusPatch is what of the status of a Node is written.
type statusPatch struct {
	Status struct {
		Conditions []corev1.NodeCondition  `json:"conditions,omitempty"`
		Images     []corev1.ContainerImage `json:"images,omitempty"`
	} `json:"status"`
}

// beatPatch is a heartbeat: the conditions are what they were, and were looked at now.
func beatPatch(now metav1.Time) (p statusPatch) {
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		c.LastHeartbeatTime = now
		p.Status.Conditions = append(p.Status.Conditions, c)
	}
	return p
}

// imagesPatch has so many images, each by its digest and by a tag.
func imagesPatch(n int) (p statusPatch) {
	for i := range n {
		name := fmt.Sprintf("registry.example.com/team-%d/image-%d", i%7, i)
		p.Status.Images = append(p.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064x", name, i+1), fmt.Sprintf("%s:v1.%d", name, i)}, SizeBytes: int64(i+1) << 20,
		})
	}
	return p
}
