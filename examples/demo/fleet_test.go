// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestFleetStopsByItself plays rollouts over a small fleet, with the reference controller: a revision that is fatal for some nodes stops by itself within
// the bound that the status has shown before (R-RO-28), and the fleet goes back by number (R-RO-29).
func TestFleetStopsByItself(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "fleet", "--nodes=10", "--page=127.0.0.1:0", "--control-plane=BIN/controlplane -stdin -fleet -with=kube-controller-manager,kube-scheduler,kwok")
	d.until(t, "Starting 10 agents")
	seesPage(t, d)
	if code := d.wait(t); code != 0 {
		t.Fatalf("exit status: got %d, want 0; the demo wrote\n%s", code, d.out)
	}
	_, table, _ := strings.Cut(d.out.String(), "What happened, on 10 nodes:\n")
	table = strings.Join(strings.Fields(table), " ")
	for _, want := range []string{"v1 good completed 10/10", "v2 fatal stopped itself", "v1 again went back 10/10"} {
		if !strings.Contains(table, want) {
			t.Errorf("summary: got %q, want it to have %q", table, want)
		}
	}
}

// seesPage opens the page that the demo has named.
func seesPage(t *testing.T, d *demo) {
	t.Helper()
	said := regexp.MustCompile(`live:\s+(http://127\.0\.0\.1:\d+/)`).FindStringSubmatch(d.out.String())
	if said == nil {
		t.Fatalf("no page is named; the demo wrote\n%s", d.out)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, said[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(page), "belay") {
		t.Errorf("page: got %s, %v, %.100q, want the fleet page", response.Status, err, page)
	}
}
