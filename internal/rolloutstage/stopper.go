// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
)

// A stopper counts the writes of a controller, and stops or freezes its process at one of them.
type stopper struct {
	c    *child
	next http.RoundTripper
}

// RoundTrip never returns from the write at which the process stops.
func (s stopper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") || !strings.Contains(r.URL.Path, s.c.At) {
		return s.next.RoundTrip(r)
	}
	s.c.mu.Lock()
	s.c.writes++
	n := s.c.writes
	s.c.mu.Unlock()
	switch what := r.Method + " " + r.URL.Path; n {
	case s.c.Stop:
		if s.c.Sent {
			if response, err := s.next.RoundTrip(r); err == nil {
				defer response.Body.Close()
			}
		}
		s.c.tell(Stopped, what)
		select {}
	case s.c.Freeze:
		s.c.tell(Freezes, what)
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return nil, err
		}
	}
	return s.next.RoundTrip(r)
}

// KindOf is what a write of an [Event] is, without names.
func KindOf(write string) string {
	return regexp.MustCompile(`(/(nodes|nodeshadows|rollouts|disruptionledgers|pods|namespaces)/)[^/]+`).ReplaceAllString(write, "$1*")
}
