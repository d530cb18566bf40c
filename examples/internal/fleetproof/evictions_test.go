// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// auditPolicy keeps of all requests how agents and controllers make pods go.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  users: [` + user + `]
  verbs: [create]
  resources: [{group: "", resources: [pods/eviction]}]
- level: Metadata
  users: [` + user + `]
  verbs: [delete, deletecollection]
  resources: [{group: "", resources: [pods]}]
- level: None
`

// An auditEvent is what is read of a line of the audit log.
type auditEvent struct {
	Verb string `json:"verb"`
	URI  string `json:"requestURI"`
	Ref  struct {
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Request *struct { // nil where the server has not read it: it has no place for it, as a 429 says
		Options struct {
			Preconditions struct {
				UID string `json:"uid"`
			} `json:"preconditions"`
		} `json:"deleteOptions"`
	} `json:"requestObject"`
}

// A partings is how pods were made to go.
type partings struct {
	evictions, torn int      // torn are lines that a server has not written to their end
	wrong           []string // E19: what is no eviction, and evictions of whichever pod has the name
}

// readPartings reads an audit log.
func readPartings(log io.Reader) (p partings, err error) {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return p, nil
		}
		if err != nil && err != io.EOF {
			return p, fmt.Errorf("reading the audit log: %w", err)
		}
		p.add(line)
	}
}

func (p *partings) add(line []byte) {
	var e auditEvent
	switch err := json.Unmarshal(line, &e); {
	case err != nil:
		p.torn++
	case e.Verb != "create" || e.Ref.Subresource != "eviction":
		p.wrong = append(p.wrong, fmt.Sprintf("E19: a pod was made to go by %s %s, want an eviction", e.Verb, e.URI))
	case e.Request == nil && e.Status.Code >= http.StatusBadRequest:
	case e.Request == nil || e.Request.Options.Preconditions.UID == "":
		p.wrong = append(p.wrong, fmt.Sprintf("E19: the eviction %s names no UID", e.URI))
	default:
		p.evictions++
	}
}

// evictions is how many pods were evicted. Nothing else has made pods go: E19. An API server that was killed leaves half a line at most.
func (s *stage) evictions() int {
	s.t.Helper()
	log, err := os.Open(s.env.AuditLog())
	must(s.t, err)
	defer log.Close()
	p, err := readPartings(log)
	must(s.t, err)
	for _, w := range p.wrong {
		s.t.Error(w)
	}
	if kills := s.faults[apiServerKilled] + s.faults[etcdKilled]; p.torn > kills {
		s.t.Errorf("E19: %d lines of the audit log can't be read, and servers were killed %d times", p.torn, kills)
	}
	if p.evictions == 0 && !s.bare {
		s.t.Errorf("no pod was evicted: nothing is proven")
	}
	return p.evictions
}

// What makes pods go otherwise than by an eviction of just that pod is told.
func TestPartingsThatAreWrongAreTold(t *testing.T) {
	const good = `{"verb":"create","requestURI":"/x","objectRef":{"subresource":"eviction"},"requestObject":{"deleteOptions":{"preconditions":{"uid":"u"}}}}`
	for _, c := range []struct{ log, want string }{
		{good + "\n" + good, "2 0 []"},
		{`{"verb":"create","requestURI":"/x","objectRef":{"subresource":"eviction"},"requestObject":{}}` + "\n", "0 0 [E19: the eviction /x names no UID]"},
		{`{"verb":"create","requestURI":"/x","objectRef":{"subresource":"eviction"},"responseStatus":{"code":201}}` + "\n", "0 0 [E19: the eviction /x names no UID]"},
		{`{"verb":"create","requestURI":"/x","objectRef":{"subresource":"eviction"},"responseStatus":{"code":429}}` + "\n", "0 0 []"},
		{`{"verb":"create","requestURI":"/x","objectRef":{"subresource":"eviction"},"requestObject":{},"responseStatus":{"code":429}}` + "\n", "0 0 [E19: the eviction /x names no UID]"},
		{`{"verb":"delete","requestURI":"/x","objectRef":{}}` + "\n", "0 0 [E19: a pod was made to go by delete /x, want an eviction]"},
		{good[:40] + good + "\n" + good + "\n", "1 1 []"},
	} {
		p, err := readPartings(strings.NewReader(c.log))
		must(t, err)
		if got := fmt.Sprint(p.evictions, p.torn, p.wrong); got != c.want {
			t.Errorf("%s: got %q, want %q", c.log, got, c.want)
		}
	}
}
