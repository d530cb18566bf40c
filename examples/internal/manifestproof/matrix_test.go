// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testproc"
)

// matrix is who may do what, as docs/security.md shows it. "yes" is allowed; "role" is refused because no role gives it; "policy" is refused by a
// ValidatingAdmissionPolicy of the manifests; "server" is refused by the API server's own NodeRestriction. The agents are those of node a: one in a pod,
// with the pod's token, and one on the host, with the certificate of the kubelet.
const matrix = `
| action                                           | agent in a pod | agent on a host | controller | viewer | operator |
|--------------------------------------------------|----------------|-----------------|------------|--------|----------|
| read the NodeShadow of its node                  | yes            | yes             | yes        | role   | role     |
| report in the NodeShadow of its node             | yes            | yes             | role       | role   | role     |
| report in the NodeShadow of another node         | policy         | policy          | role       | role   | role     |
| order in the NodeShadow of its node              | role           | role            | yes        | role   | role     |
| make a NodeShadow                                | role           | role            | yes        | role   | role     |
| delete the NodeShadow of another node            | role           | role            | yes        | role   | role     |
| list all NodeShadows                             | yes            | yes             | yes        | yes    | yes      |
| read the NodeConfig of its node                  | role           | yes             | role       | role   | role     |
| read a Revision                                  | role           | yes             | role       | role   | role     |
| read the config that a node is told to use       | role           | yes             | role       | role   | role     |
| report in the NodeConfig of its node             | role           | yes             | role       | role   | role     |
| report in the NodeConfig of another node         | role           | policy          | role       | role   | role     |
| name another config in the NodeConfig of its node | role          | role            | role       | role   | role     |
| renew the Lease of its node's agent              | yes            | role            | yes        | role   | role     |
| renew the Lease of another node's agent          | policy         | role            | yes        | role   | role     |
| delete the Lease of another node's agent         | policy         | role            | yes        | role   | role     |
| take the Lease of a leader                       | role           | role            | yes        | role   | role     |
| set ConfigOK of its Node                         | role           | yes             | yes        | role   | role     |
| set ConfigOK of another Node                     | role           | server          | yes        | role   | role     |
| set Ready of its Node                            | role           | yes             | yes        | role   | role     |
| make an event about its Node                     | role           | yes             | yes        | role   | role     |
| cordon another node                              | role           | server          | yes        | role   | role     |
| taint its own node                               | role           | server          | yes        | role   | role     |
| delete a Node                                    | role           | role            | role       | role   | role     |
| evict a pod of another node                      | role           | server          | yes        | role   | role     |
| delete a pod of another node                     | role           | server          | role       | role   | role     |
| list all pods                                    | role           | role            | yes        | yes    | yes      |
| run a command in a pod                           | role           | role            | role       | role   | role     |
| read the ledger                                  | role           | role            | yes        | role   | role     |
| write the ledger                                 | role           | role            | yes        | role   | role     |
| list all ledgers                                 | role           | role            | yes        | yes    | yes      |
| pause, abort or roll back a Rollout              | role           | role            | yes        | role   | yes      |
| write the status of a Rollout                    | role           | role            | yes        | role   | role     |
| make a Rollout                                   | role           | role            | role       | role   | role     |
| make a Revision                                  | role           | role            | role       | role   | role     |
| read a Secret                                    | role           | role            | role       | role   | role     |
| make a token of the agents' account              | role           | server          | role       | role   | role     |
| make a pod that runs as an agent                 | role           | server          | role       | role   | role     |
| change the policy                                | role           | role            | role       | role   | role     |
| give itself a role                               | role           | role            | role       | role   | role     |
| act as somebody else                             | role           | role            | role       | role   | role     |
`

// settle is how long a cell may take to be as it should: the server obeys roles and policies after a moment.
const settle = 10 * time.Second

// R-RO-02, R-RO-06, R-AU-01, R-AU-08, R-DR-10: who may do what with the manifests' own roles and policies, on a real API server.
func TestWhoMayDoWhat(t *testing.T) {
	c := installed(t)
	s := newStage(t, c)
	header, rows := grid(t, matrix)
	for _, row := range rows {
		action := row[0]
		do := actions()[action]
		if do == nil {
			t.Errorf("the matrix has the action %q, which is not known", action)
			continue
		}
		for i, want := range row[1:] {
			name := header[i+1]
			who := s.actors[name]
			if who == nil {
				t.Fatalf("the matrix has the caller %q, who is not known", name)
			}
			if got, err := s.outcome(t, who, do, want); got != want {
				t.Errorf("%s / %s: got %q, want %q: %v", action, name, got, want, err)
			}
		}
	}
	if len(rows) != len(actions()) {
		t.Errorf("the matrix has %d rows, want one for each of the %d actions", len(rows), len(actions()))
	}
	s.unguarded(t)
	s.widened(t)
}

// The page shows what the test has proven.
func TestSecurityPageHasTheMatrix(t *testing.T) {
	_, want := grid(t, matrix)
	page := read(t, root+"/docs/security.md")
	shown := regexp.MustCompile(`(?m)^\| action .*\n(\|.*\n)+`).FindString(page)
	if shown == "" {
		t.Fatal("docs/security.md has no table of actions")
	}
	_, got := grid(t, shown)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("docs/security.md has the rows\n%v\nwant\n%v", got, want)
	}
}

// grid reads a table in Markdown.
func grid(t *testing.T, text string) (header []string, rows [][]string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == nil:
			header = cells
		case strings.HasPrefix(cells[0], "--"):
		case len(cells) != len(header):
			t.Fatalf("the row %q has %d cells, want %d", line, len(cells), len(header))
		default:
			rows = append(rows, cells)
		}
	}
	return header, rows
}

// An actor is a caller.
type actor struct {
	core    kubernetes.Interface
	objects dynamic.Interface
}

// outcome tries an action until it is what it should be, and returns what it was in the end.
func (s *stage) outcome(t *testing.T, who *actor, do action, want string) (got string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	pace := testproc.NewPace()
	for {
		err = do(t.Context(), s, who)
		if got = verdict(err); got == want {
			return got, nil
		}
		select {
		case <-ctx.Done():
			return got, err
		case <-pace.Next():
		}
	}
}

// verdict says what has refused a request.
func verdict(err error) string {
	switch {
	case err == nil:
		return "yes"
	case !apierrors.IsForbidden(err):
		return "error"
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'belay-"):
		return "policy"
	case strings.Contains(err.Error(), `" cannot `):
		return "role"
	}
	return "server"
}
