// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/belayproject/belay/examples/internal/proc"
)

const (
	healthzEvery   = 100 * time.Millisecond
	healthzTimeout = time.Second
	// programGrace is how long the program may take to end. It is less than what an agent of the demo gives this process.
	programGrace = 2 * time.Second
)

// runProgram runs the real kubelet until ctx ends or it ends by itself, which is always an error.
func runProgram(ctx context.Context, o Options, cfg kubeletv1beta1.KubeletConfiguration, note func(Event, string) error) error {
	cmd := exec.Command(o.Program[0], append(o.Program[1:len(o.Program):len(o.Program)], "--config="+o.Config)...)
	cmd.Stdout, cmd.Stderr = o.Log, o.Log
	p, err := proc.Start("the kubelet", cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	end := orphaned(ctx)
	defer func() { cancel(); <-end }()
	host, port := healthzAddress(cfg, o.Address)
	address := net.JoinHostPort(host, strconv.Itoa(port))
	tick := time.NewTicker(healthzEvery)
	defer tick.Stop()
	for serving := false; ; {
		select {
		case <-p.Done():
			return p.EndError()
		case <-end:
			return p.Stop(context.WithoutCancel(ctx), programGrace)
		case <-tick.C:
		}
		if !serving && healthy(ctx, address) {
			serving = true
			if err := note(Serving, "healthz at "+address); err != nil {
				_ = p.Stop(context.WithoutCancel(ctx), programGrace)
				return err
			}
		}
	}
}

// healthy asks healthz at the address.
func healthy(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, healthzTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return false
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
