// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

// told tries to make an event about a node's config, as package configsync/kube does.
func told(node string) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		_, err := who.core.EventsV1().Events(apiserver.EventNamespace).Create(ctx, configEvent(node), metav1.CreateOptions{DryRun: dry})
		return err
	}
}

func configEvent(node string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "matrix." + node}, EventTime: metav1.NewMicroTime(time.Now()), Type: corev1.EventTypeNormal,
		ReportingController: apiserver.EventController, ReportingInstance: node, Action: apiserver.EventAction, Reason: apiserver.EventReasonPrefix + "Adopted",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	}
}

// withEvents is what kustomize makes of a kustomization of somebody's own with the component.
func withEvents(t *testing.T, patches string) []*unstructured.Unstructured {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	whole, err := filepath.Abs(manifests)
	must(t, err)
	component, err := filepath.Rel(dir, filepath.Join(whole, "components", "config-events")) // kustomize takes no other path
	must(t, err)
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\ncomponents: [" + component + "]\n" + patches
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	base, err := filepath.Rel(whole, dir)
	must(t, err)
	return build(t, base)
}

// The component gives what the package names, in the namespace of events about Nodes, and nothing of it is in any base.
func TestConfigEventsTakeTheirRightsAlone(t *testing.T) {
	const name = "belay-config-events"
	all := withEvents(t, "")
	role := find[rbacv1.Role](t, all, "Role", name)
	if got, want := flat(role.Rules), flat(apiserver.EventRules()); !maps.Equal(got, want) || role.Namespace != apiserver.EventNamespace {
		t.Errorf("the Role gives %v in %q, want %v in %q", got, role.Namespace, want, apiserver.EventNamespace)
	}
	if len(all) != 2 {
		t.Errorf("the component has %q, want a Role and its binding alone", keys(all))
	}
	for _, base := range bases(t) {
		for _, u := range build(t, base) {
			if u.GetName() == name {
				t.Errorf("%s is in the base %s", key(u), base)
			}
		}
	}
}

// Who is named in the component may make events about Nodes, and neither read, change or delete one, nor make one elsewhere; nobody else gets anything.
func TestConfigEventsAreForThoseWhoAreNamed(t *testing.T) {
	c := installed(t)
	const account = "system:serviceaccount:fleet:agent"
	named := "patches:\n- target: {kind: RoleBinding, name: belay-config-events}\n" +
		"  patch: |-\n    - {op: replace, path: /subjects, value: [{kind: ServiceAccount, name: agent, namespace: fleet}]}\n"
	for _, round := range []struct {
		patches       string
		member, other rest.ImpersonationConfig
	}{
		{"", rest.ImpersonationConfig{UserName: "a", Groups: []string{"belay-config-agents"}}, rest.ImpersonationConfig{UserName: account}},
		{named, rest.ImpersonationConfig{UserName: account}, rest.ImpersonationConfig{UserName: "a", Groups: []string{"belay-config-agents"}}},
	} {
		member, other := c.as(t, round.member), c.as(t, round.other)
		eventually(t, "an agent that is named nowhere must make no event", func() error { return wants("role", told(ownNode)(t.Context(), nil, member)) })
		all := withEvents(t, round.patches)
		c.apply(t, all)
		eventually(t, "an agent that is named must make events", func() error { return wants("yes", told(ownNode)(t.Context(), nil, member)) })
		for what, err := range c.beyondEvents(t, member) {
			must(t, wrapped(what, wants("role", err)))
		}
		must(t, wrapped("an event of somebody else", wants("role", told(ownNode)(t.Context(), nil, other))))
		c.sent(t, member)
		c.unbind(t, all)
	}
}

// as is somebody whom the administrator stands for.
func (c *cluster) as(t *testing.T, who rest.ImpersonationConfig) *actor {
	t.Helper()
	config := rest.CopyConfig(c.env.Config())
	config.Impersonate = who
	var a actor
	a.core, a.objects = clients(t, config)
	return &a
}

func wants(want string, err error) error {
	if got := verdict(err); got != want {
		return fmt.Errorf("got %q, want %q: %w", got, want, err)
	}
	return nil
}

func wrapped(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// beyondEvents is what is refused to who may make events.
func (c *cluster) beyondEvents(t *testing.T, who *actor) map[string]error {
	t.Helper()
	ctx, api := t.Context(), who.core.EventsV1().Events(apiserver.EventNamespace)
	_, list := api.List(ctx, metav1.ListOptions{Limit: 1})
	_, update := api.Update(ctx, configEvent(ownNode), metav1.UpdateOptions{DryRun: dry})
	_, elsewhere := who.core.EventsV1().Events(systemNamespace).Create(ctx, configEvent(ownNode), metav1.CreateOptions{DryRun: dry})
	_, old := who.core.CoreV1().Events(apiserver.EventNamespace).List(ctx, metav1.ListOptions{Limit: 1})
	_, node := who.core.CoreV1().Nodes().Get(ctx, ownNode, metav1.GetOptions{})
	return map[string]error{
		"listing events": list, "changing an event": update, "an event of another namespace": elsewhere, "listing core events": old, "reading a Node": node,
		"deleting an event": api.Delete(ctx, "matrix."+ownNode, metav1.DeleteOptions{DryRun: dry}),
	}
}

// sent has the package itself send an event, twice, which the server keeps as one. Agents of other tests on the same server are members of the bound group
// too, and tell of their own nodes.
func (c *cluster) sent(t *testing.T, who *actor) {
	t.Helper()
	sender, err := apiserver.NewEventSender(who.objects, ownNode)
	must(t, err)
	entry := history.Entry{N: 1, At: time.Now(), Kind: history.RolledBack}
	must(t, sender.Send(t.Context(), entry))
	must(t, sender.Send(t.Context(), entry))
	api := c.admin.EventsV1().Events(apiserver.EventNamespace)
	found, err := api.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var ours []string
	for _, e := range found.Items {
		if e.ReportingController == apiserver.EventController && e.ReportingInstance == ownNode {
			ours = append(ours, e.Name)
			must(t, api.Delete(t.Context(), e.Name, metav1.DeleteOptions{}))
		}
	}
	if len(ours) != 1 {
		t.Errorf("the server has the events %q, want one", ours)
	}
}
