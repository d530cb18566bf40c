// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drainers is the group of those who drain in these tests.
const drainers = "drainproof"

// auditPolicy keeps what drainers write, with the body of the request. The stage RequestReceived is kept too: it is logged before the
// server does anything, so that no request is missing that anybody has seen an answer of.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Request
  userGroups: [` + drainers + `]
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// An auditEvent is what the tests read of one event in the audit log.
type auditEvent struct {
	AuditID string
	Stage   string
	Verb    string
	User    struct{ Username string }
	// ObjectRef names what the request is about.
	ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
	RequestObject            json.RawMessage
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

func (e auditEvent) String() string {
	return fmt.Sprintf("%s %s/%s %s/%s at %s: %d", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Namespace, e.ObjectRef.Name,
		e.RequestReceivedTimestamp.Format(time.StampMicro), e.ResponseStatus.Code)
}

func (e auditEvent) isEviction() bool {
	return e.ObjectRef.Resource == "pods" && e.ObjectRef.Subresource == "eviction"
}

// abandoned says that the client was gone before the server had an answer: the server may have carried the request out.
func (e auditEvent) abandoned() bool {
	return e.ResponseStatus.Code == 504 || e.ResponseStatus.Code == 0 || e.Stage == "Panic"
}

func (e auditEvent) isNodeWrite() bool { return e.ObjectRef.Resource == "nodes" }

// target is the UID that an eviction has as precondition.
func (e auditEvent) target() (types.UID, error) {
	var body policyv1.Eviction
	if err := json.Unmarshal(e.RequestObject, &body); err != nil {
		return "", fmt.Errorf("%s: %w", e, err)
	}
	if body.DeleteOptions == nil || body.DeleteOptions.Preconditions == nil || body.DeleteOptions.Preconditions.UID == nil {
		return "", fmt.Errorf("%s: has no UID as precondition: %s", e, e.RequestObject)
	}
	return *body.DeleteOptions.Preconditions.UID, nil
}

// nodePatch is what the tests read of a patch of a Node.
type nodePatch struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Unschedulable *bool           `json:"unschedulable"`
		Taints        *[]corev1.Taint `json:"taints"`
	} `json:"spec"`
}

func (e auditEvent) nodePatch() (nodePatch, error) {
	var p nodePatch
	if err := json.Unmarshal(e.RequestObject, &p); err != nil {
		return p, fmt.Errorf("%s: %s: %w", e, e.RequestObject, err)
	}
	return p, nil
}

// audited returns the completed writes of a user in the order in which the server received them. It waits until every request that the
// server has received has ended there, which the end of its client does not hasten.
func audited(t *testing.T, user string) []auditEvent {
	t.Helper()
	events, err := auditOf(t.Context(), shared.Env(t).AuditLog(), user)
	must(t, err)
	return events
}

func auditOf(ctx context.Context, log, user string) (events []auditEvent, err error) {
	err = until(ctx, func() error {
		events, err = readAudit(log, user)
		return err
	})
	return events, err
}

func readAudit(path, user string) ([]auditEvent, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var done []auditEvent
	open := map[string]auditEvent{}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if !bytes.Contains(line, []byte(user)) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err) // it is being written
		}
		if e.User.Username != user {
			continue
		}
		if e.Stage == "ResponseComplete" || e.Stage == "Panic" {
			delete(open, e.AuditID)
			done = append(done, e)
		} else {
			open[e.AuditID] = e
		}
	}
	for _, e := range open {
		return nil, fmt.Errorf("%s is still under way", e)
	}
	sortByReceipt(done)
	return done, nil
}

func describe(events []auditEvent) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "\n  %s", e)
	}
	return b.String()
}

func sortByReceipt(events []auditEvent) {
	slices.SortStableFunc(events, func(a, b auditEvent) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
}
