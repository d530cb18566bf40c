// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/controller/metrics"
	controllersettings "github.com/belayproject/belay/examples/internal/controller/settings"
	"github.com/belayproject/belay/examples/internal/controller/wire"
	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/cluster"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// patience bounds each wait.
	patience = 2 * time.Minute
	account  = "system:serviceaccount:belay-system:belay-controller"
)

// A cast is a fleet with the reference controller in this process, and people with the rights of the manifests.
type cast struct {
	*rolloutstage.Fleet
	t              *testing.T
	viewer, otto   string // kubeconfigs
	plane          *wire.Plane
	stopController func()
}

func newCast(t *testing.T) *cast {
	t.Helper()
	f, err := rolloutstage.New(t.Context(), rolloutstage.Options{Nodes: 4, Cap: 1, Bare: true, Verify: 150 * time.Millisecond})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	c := &cast{Fleet: f, t: t}
	c.apply("../../manifests/controller/rbac.yaml")
	c.apply("../../manifests/kubectl-belay/rbac.yaml")
	c.viewer, c.otto = c.user("vera", "belay-viewer"), c.user("otto", "belay-viewer", "belay-operator")
	c.known()
	return c
}

// known waits until the API server knows of the rights of people, because a command that is refused does not try again.
func (c *cast) known() {
	c.t.Helper()
	lists := authorizationv1.ResourceAttributes{Group: v1alpha1.GroupVersion.Group, Resource: "rollouts", Verb: "list"}
	patches := authorizationv1.ResourceAttributes{Group: v1alpha1.GroupVersion.Group, Resource: "rollouts", Verb: "patch"}
	leases := authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Verb: "get", Namespace: "belay-system"}
	e2e.Allowed(c.t, c.Core, "vera", nil, lists, leases)
	e2e.Allowed(c.t, c.Core, "otto", nil, lists, patches, leases)
}

// user makes a person with ClusterRoles, and the Role for Leases.
func (c *cast) user(name string, roles ...string) (kubeconfig string) {
	c.t.Helper()
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}
	for _, role := range roles {
		_, err := c.Core.RbacV1().ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		must(c.t, err)
	}
	_, err := c.Core.RbacV1().RoleBindings("belay-system").Create(c.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "belay-viewer"},
	}, metav1.CreateOptions{})
	must(c.t, err)
	return c.kubeconfig(name)
}

func (c *cast) kubeconfig(user string, groups ...string) string {
	c.t.Helper()
	config, err := c.Env.NewUser(user, groups...)
	must(c.t, err)
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	must(c.t, testenv.WriteKubeconfig(path, config))
	return path
}

// startController runs the parts of examples/controller.
func (c *cast) startController() {
	c.t.Helper()
	s := &controllersettings.Run{
		Kubeconfig: c.kubeconfig(account, "system:serviceaccounts"), Domains: []string{rolloutstage.Domain}, Namespace: "belay-system", Switch: "belay-controller",
		PodUID: c.t.Name(), Lease: 5 * time.Second, Listen: "127.0.0.1:0", Stop: 5 * time.Second, OwnNode: "node-0003", MaxUnavailable: 1,
		Drains: controllersettings.Drains{Evictions: 20},
	}
	must(c.t, s.Validate())
	plane, err := wire.New(s, metrics.New(), wire.Parts{})
	must(c.t, err)
	c.plane = plane
	ctx, cancel := context.WithCancel(klog.NewContext(c.t.Context(), klog.Logger{}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := plane.Run(ctx); err != nil && ctx.Err() == nil {
			c.t.Errorf("the controller has ended: %v", err)
		}
	}()
	c.stopController = func() { cancel(); <-done }
	c.t.Cleanup(c.stopController)
}

// apply creates the objects in a manifest.
func (c *cast) apply(path string) {
	c.t.Helper()
	text, err := os.ReadFile(path)
	must(c.t, err)
	client, err := discovery.NewDiscoveryClientForConfig(c.Env.Config())
	must(c.t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		must(c.t, err)
		if len(u.Object) == 0 {
			continue
		}
		mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		must(c.t, err)
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if resource := c.Client.Resource(mapping.Resource); mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			_, err = resource.Namespace(u.GetNamespace()).Create(c.t.Context(), &u, options)
		} else {
			_, err = resource.Create(c.t.Context(), &u, options)
		}
		must(c.t, err)
	}
}

// run is one run of the command. Its text fits the page.
func (c *cast) run(kubeconfig string, want int, args ...string) (out string) {
	c.t.Helper()
	out, said, code := c.try(kubeconfig, args...)
	if code != want {
		c.t.Fatalf("kubectl belay %s ended with code %d, want %d; it printed\n%s\nand said %s", strings.Join(args, " "), code, want, out, said)
	}
	c.t.Logf("$ kubectl belay %s    (%d)\n%s%s", strings.Join(args, " "), code, out, said)
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(strings.TrimSpace(line), "\"") && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > page.Width {
			c.t.Errorf("kubectl belay %s: the line is wider than %d columns: %s", strings.Join(args, " "), page.Width, line)
		}
	}
	return out + said
}

func (c *cast) try(kubeconfig string, args ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	command := newCommand(&stdout, &stderr)
	command.SetArgs(append(args, "--kubeconfig="+kubeconfig))
	code, err := exitCode(command.ExecuteContext(c.t.Context()))
	if err != nil {
		say(&stderr, "kubectl-belay: ", err.Error())
	}
	return stdout.String(), stderr.String(), code
}

// awaits runs a command until it ends with a code and has printed a text.
func (c *cast) awaits(kubeconfig string, want int, text string, args ...string) string {
	c.t.Helper()
	var out string
	err := testproc.Poll(patience, func() error {
		stdout, said, code := c.try(kubeconfig, args...)
		if out = stdout; code != want || !strings.Contains(out, text) {
			return fmt.Errorf("kubectl belay %s: code %d, want %d and %q in\n%s%s", strings.Join(args, " "), code, want, text, out, said)
		}
		return nil
	})
	must(c.t, err)
	c.t.Logf("$ kubectl belay %s    (%d)\n%s", strings.Join(args, " "), want, out)
	return out
}

// People with the rights of the manifests, and no more, run a rollout by the command alone: they plan it, follow it, ask why, stop it and let it go on,
// and after a fatal revision go back.
func TestPeopleRunARollout(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	holds(t, c.run(c.otto, exitError, "status"), "there is no Rollout")
	one := intstr.FromInt32(1)
	must(t, c.Begin(t.Context(), "v2", func(s *v1alpha1.RolloutSpec) {
		s.Stages = []v1alpha1.Stage{{Name: "canary", Size: &one, Approval: true}, {Name: "rest"}}
		s.RetryAfter = &metav1.Duration{Duration: time.Second}
		s.Detectors = []v1alpha1.Detector{{Failures: &v1alpha1.Failures{At: intstr.FromInt32(1)}}}
	}))
	holds(t, c.run(c.otto, exitDone, "plan", "--assume-agents", "--approve-after=1h", "--cycle=2m", "--worst-cycle=9m"), "canary", "completed in")
	holds(t, c.run(c.otto, exitUnanswered, "pause", "--timeout=300ms"), "is not answered yet")
	holds(t, c.run(c.otto, exitError, "resume"), "Pause (pause-", "nobody has answered it yet", "give --displace")
	c.meanwhile()
	holds(t, c.run(c.otto, exitStands, "doctor"), "nobody leads domain fleet: there is no Lease", "has no DisruptionLedger")
	c.startController()
	c.awaits(c.otto, exitStands, "Paused", "status")
	c.steer()
	c.fail()
	c.look()
}

// steer brings the fleet to v2.
func (c *cast) steer() {
	t := c.t
	holds(t, c.run(c.otto, exitDone, "resume", "fleet"), "Resume was carried out")
	holds(t, c.run(c.otto, exitStands, "status", "--watch"), "1/4 done", "Approval")
	holds(t, c.run(c.otto, exitStands, "plan", "fleet"), "comes to a stand")
	holds(t, c.run(c.viewer, exitDone, "why", "node-0003"), "waits for somebody's approval", "kubectl belay promote fleet", "the Node was created")
	holds(t, c.run(c.viewer, exitError, "promote"), "forbidden")
	holds(t, c.run(c.otto, exitDone, "promote"), "Promote was carried out")
	holds(t, c.run(c.otto, exitDone, "pause"), "Pause was carried out", "Proven: no further node begins")
	holds(t, c.run(c.otto, exitRefused, "pause"), "Pause was refused")
	holds(t, c.run(c.viewer, exitDone, "why", "node-0003"), "Paused", "kubectl belay resume fleet")
	holds(t, c.run(c.otto, exitDone, "abort"), "Abort was carried out", "Proven")
	c.awaits(c.otto, exitStands, "Aborted", "status")
	c.run(c.otto, exitDone, "resume")
	holds(t, c.run(c.viewer, exitDone, "status", "-w"), "4/4 done", "Completed")
}

// fail brings it to a fatal revision, and back.
func (c *cast) fail() {
	t := c.t
	must(t, c.Turn(t.Context(), "fatal"))
	c.awaits(c.otto, exitStands, "Frozen", "status")
	holds(t, c.run(c.viewer, exitStands, "status"), "kubectl belay rollback fleet --to=1 # to v2")
	holds(t, c.run(c.otto, exitStands, "doctor"), "and keeps its slot", "kubectl belay why node-0000; mend the node", "leads domain fleet")
	holds(t, c.run(c.viewer, exitDone, "why", "node-0000"), "fatal", "nothing runs any more", "Broken")
	holds(t, c.run(c.otto, exitRefused, "rollback", "--to=7"), "the history has no entry 7")
	holds(t, c.run(c.otto, exitDone, "accept"), "Accept was carried out")
	holds(t, c.run(c.otto, exitDone, "rollback"), "Going back to entry 1", "Rollback was carried out")
	holds(t, c.run(c.viewer, exitStands, "status", "-w"), "AtGate", "rolled back to entry 1")
	c.run(c.otto, exitDone, "promote")
	c.run(c.viewer, exitDone, "status", "-w")
	c.takeOffers()
}

// meanwhile asks for verbs on a rollout that has changed since it was read: what others have asked for is not overwritten.
func (c *cast) meanwhile() {
	t, ctx := c.t, c.t.Context()
	people, err := cluster.Connect(drainsettings.Cluster{Kubeconfig: c.otto})
	must(t, err)
	read, err := people.Rollouts(ctx)
	must(t, err)
	r := &read[0]
	patch := []byte(`{"metadata":{"annotations":{"example.com/changed":"yes"}}}`)
	_, err = c.Client.Resource(v1alpha1.RolloutsResource).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	must(t, people.Ask(ctx, r, v1alpha1.Verb{Request: "pause-first", Do: "Pause"}))
	err = people.Ask(ctx, r, v1alpha1.Verb{Request: "resume-second", Do: "Resume"})
	if err == nil || !strings.Contains(err.Error(), `somebody else has asked rollout "fleet" for Pause (pause-first) in the meantime; nothing was asked for`) {
		t.Errorf("asking for what somebody else has asked something of since: %v", err)
	}
	again := r.DeepCopy()
	again.UID, again.Spec.Verb = "another", &v1alpha1.Verb{Request: "pause-first", Do: "Pause"}
	if err = people.Ask(ctx, again, v1alpha1.Verb{Request: "resume-third", Do: "Resume"}); err == nil || !strings.Contains(err.Error(), "deleted and created again") {
		t.Errorf("asking another one of that name: %v", err)
	}
}

// takeOffers types each line that the status offers, one after the other, until nothing is offered that was not typed: each is carried out.
func (c *cast) takeOffers() {
	offer := regexp.MustCompile(`kubectl belay ([a-z|]+) fleet( --to=[0-9]+)?`)
	typed := map[string]bool{}
	for range 16 {
		out, _, _ := c.try(c.viewer, "status")
		var next []string
		for _, m := range offer.FindAllStringSubmatch(out, -1) {
			for verb := range strings.SplitSeq(m[1], "|") {
				if line := verb + m[2]; next == nil && !typed[line] {
					next, typed[line] = append([]string{verb, "fleet"}, strings.Fields(m[2])...), true
				}
			}
		}
		if next == nil {
			if !typed["pause"] || !typed["resume"] {
				c.t.Errorf("neither pause nor resume was offered:\n%s", out)
			}
			return
		}
		c.run(c.otto, exitDone, next...)
	}
	c.t.Errorf("new lines are offered for ever: %v", typed)
}

// switchOff has the page and the controllers know of the switch, and of what they were told.
func (c *cast) switchOff() {
	t := c.t
	_, err := c.Core.CoreV1().ConfigMaps("belay-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "belay-controller"}, Data: map[string]string{wire.DisabledKey: "true", wire.ReasonKey: "the audit is on"},
	}, metav1.CreateOptions{})
	must(t, err)
	must(t, testproc.Poll(patience, func() error {
		s, ok := c.plane.Seen()
		if !ok || s.OwnNode != "node-0003" || len(s.Caps) != 1 || s.Caps[0].Max != 1 || len(s.Gates) != 1 || s.Gates[0].Message != "the audit is on" {
			return fmt.Errorf("the page sees %t: own node %q, caps %+v, gates %+v", ok, s.OwnNode, s.Caps, s.Gates)
		}
		return nil
	}))
}

// look reads the reports that are left.
func (c *cast) look() {
	t := c.t
	holds(t, c.run(c.viewer, exitDone, "history"), "v2", "fatal", "back to 1")
	holds(t, c.run(c.viewer, exitDone, "history", "--diff=1,2"), "opaque", "fatal")
	holds(t, c.run(c.viewer, exitError, "why", "node-001"), `there is no node "node-001"; near are node-0001`)
	holds(t, c.run(c.viewer, exitError, "status", "fleeet"), "near are fleet")
	holds(t, c.run(c.viewer, exitDone, "doctor"), "you lack, for the verbs", "rights can't be asked for")
	for _, args := range [][]string{{"status"}, {"why", "node-0000"}, {"plan"}, {"history"}, {"doctor"}} {
		out, said, _ := c.try(c.otto, append(args, "-o=json")...)
		if !json.Valid([]byte(out)) {
			t.Errorf("kubectl belay %q -o json printed %s%s", args, out, said)
		}
	}
	c.switchOff()
	c.stopController()
	holds(t, c.run(c.otto, exitStands, "doctor", "--patience=1s"), "nobody leads domain fleet")
}

func holds(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("want %q in\n%s", w, text)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
