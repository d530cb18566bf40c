// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// flags is what each of the commands' settings has.
type flags interface {
	AddFlags(*pflag.FlagSet)
	Validate() error
}

// parse does what the command does with its line.
func parse(s flags, args ...string) error {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddFlags(f)
	if err := f.Parse(args); err != nil {
		return ParseError(err)
	}
	switch s := s.(type) {
	case *Drain:
		s.Names = f.Args()
	case *Plan:
		s.Names = f.Args()
	case *Release:
		s.Names = f.Args()
	case *Hold:
		s.Names = f.Args()
	case *Cordon:
		s.Names = f.Args()
	}
	return s.Validate()
}

func TestAWrongLineIsAUsageErrorThatSaysWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct {
		into       flags
		line, want string
	}{
		{&Drain{}, "", "give the names of nodes, or --selector"},
		{&Drain{}, "n1 -l a=b", "give the names of nodes or --selector, not both"},
		{&Drain{}, "n1 n1", `node "n1" is given twice`},
		{&Drain{}, "N_1", `node "N_1" is no name of a node`},
		{&Drain{}, "-l a=(", `--selector="a=(": must be a label selector`},
		{&Drain{}, "n1 --max-nodes=0", `--max-nodes="0": must be a number from 1, or a percent from 1% to 100%`},
		{&Drain{}, "n1 --max-nodes=101%", `--max-nodes="101%": must be a number`},
		{&Drain{}, "n1 --max-nodes=many", `--max-nodes="many": must be a number`},
		{&Drain{}, "n1 --holder=", `--holder="": must say who holds the nodes`},
		{&Drain{}, "n1 --timeout=-1s", `--timeout="-1s": must not be negative`},
		{&Drain{}, "n1 --timeout=5", `--timeout="5": must be a duration, such as 30s or 10m`},
		{&Drain{}, "n1 --rate=0", `--rate="0": must be more than 0`},
		{&Drain{}, "n1 --output=wide", `--output="wide": must be text or json`},
		{&Drain{}, "n1 --dry-run=sometimes", `--dry-run="sometimes": must be none, client or server`},
		{&Drain{}, "n1 --request-timeout=soon", `--request-timeout="soon": must be a duration, such as 30s`},
		{&Drain{}, "n1 --as-user-extra=x", `--as-user-extra="x": must be KEY=VALUE`},
		{&Drain{}, "n1 --warnings-as-errors", "warnings of the API server change nothing"},
		{&Drain{}, "pod/n1", `"pod/n1" is no node: write NAME, node/NAME or nodes/NAME`},
		{&Drain{}, "node/n1 n1", `node "n1" is given twice`},
		{&Drain{}, "node/", `node "" is no name of a node`},
		{&Cordon{}, "", "give the names of nodes"},
		{&Cordon{}, "n1 --dry-run=x", `--dry-run="x": must be none`},
		{&Drain{}, "n1 --no-such-flag", "unknown flag: --no-such-flag"},
		{&Plan{}, "", "give the names of nodes"},
		{&Plan{}, "n1 -o yaml", `--output="yaml"`},
		{&Release{}, "", "give the names of nodes"},
		{&Release{}, "n1 --soak=-1s", `--soak="-1s"`},
		{&Hold{}, "n1", `--for="0s": must be more than 0, such as 30m`},
		{&Hold{}, "n1 --for=5h", `--for="5h0m0s": must be at most 4h0m0s`},
		{&Hold{}, "--for=5m", "give the names of nodes"},
		{&Resume{}, "--holder=", `--holder="": must say who holds`},
	} {
		err := parse(c.into, strings.Fields(c.line)...)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T %q: got %v (%T), want a UsageError with %q", c.into, c.line, err, err, c.want)
		}
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	err := parse(&Drain{}, "--rate=-1", "--max-nodes=x", "--output=y")
	for _, want := range []string{"give the names", "--rate", "--max-nodes", "--output"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %q too", err, want)
		}
	}
}

func TestAGoodLineIsTaken(t *testing.T) {
	for _, c := range []struct {
		into flags
		line string
	}{
		{&Drain{}, "n1 n2.example.com --max-nodes=20% --holder=rollout/x --timeout=0 --ignore-daemonsets"},
		{&Drain{}, "-l pool=blue,!old --max-nodes=100% --dry-run"},
		{&Drain{}, "node/n1 --chunk-size=5 --skip-wait-for-delete-timeout=5 --disable-eviction -v=3 -n default"},
		{&Drain{}, "n1 --as=jane --as-group=ops --as-uid=7 --as-user-extra=a=b --cluster=c --user=u --context=x -s " +
			"https://h --token=t"},
		{&Drain{}, "n1 --request-timeout=5 --insecure-skip-tls-verify --tls-server-name=h --cache-dir=/x --vmodule=a=1 " +
			"--proxy-url=http://p"},
		{&Cordon{}, "no/n1 nodes/n2 --dry-run=server"},
		{&Plan{}, "n1"}, {&Release{}, "n1 --soak=5m"}, {&Hold{}, "n1 --for=4h"}, {&Resume{}, "--holder=x"},
	} {
		if err := parse(c.into, strings.Fields(c.line)...); err != nil {
			t.Errorf("%T %q: got %v, want no error", c.into, c.line, err)
		}
	}
}

// The zero policy is the safe one, and each flag changes what it names, over what a file says.
func TestFlagsMakeThePolicy(t *testing.T) {
	file := write(t, "localDataLimit: 1024\nsettle: 1m\nunmanaged: Block\nescalation: [{after: 1h, step: Delete}]\nrules: [{name: db, behavior: Skip}]\n")
	skip := func(key string, op metav1.LabelSelectorOperator, values ...string) drain.Rule {
		return drain.Rule{Name: "--pod-selector", Behavior: drain.BehaviorSkip, Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}}
	}
	ladder := func(after ...time.Duration) (steps []drain.Escalation) {
		for _, a := range after {
			steps = append(steps, drain.Escalation{After: a, Step: drain.StepDelete})
		}
		return steps
	}
	for _, c := range []struct {
		line string
		want drain.Policy
	}{
		{"", drain.Policy{}},
		{"--grace-period=-1 --ignore-daemonsets=true", drain.Policy{}},
		{"--delete-emptydir-data", drain.Policy{LocalData: drain.EvictPods}},
		{"--force", drain.Policy{Unmanaged: drain.EvictPods}},
		{"--grace-period=7", drain.Policy{GracePeriodSeconds: ptr.To[int64](7)}},
		{"--settle=0s", drain.Policy{Settle: ptr.To(time.Duration(0))}},
		{"--escalate=delete=10m --escalate=Delete=20m", drain.Policy{Escalation: ladder(10*time.Minute, 20*time.Minute)}},
		{"--pod-selector=a=b,c", drain.Policy{Rules: []drain.Rule{skip("a", "NotIn", "b"), skip("c", "DoesNotExist")}}},
		{"--escalate=delete=10m,grace=30s", drain.Policy{Escalation: []drain.Escalation{
			{After: 10 * time.Minute, Step: drain.StepDelete, GracePeriodSeconds: ptr.To[int64](30)},
		}}},
		{"--force --settle=2s --escalate=delete=2h --pod-selector=!x --policy=" + file, drain.Policy{
			LocalDataLimit: 1024, Unmanaged: drain.EvictPods, Settle: ptr.To(2 * time.Second), Escalation: ladder(time.Hour, 2*time.Hour),
			Rules: []drain.Rule{skip("x", "Exists"), {Name: "db", Behavior: drain.BehaviorSkip}},
		}},
	} {
		var s Plan
		if err := parse(&s, append(strings.Fields(c.line), "n1")...); err != nil {
			t.Fatal(err)
		}
		got, err := s.Policy()
		empty := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Values" || p.Last().String() == ".Rules" },
			cmp.FilterValues(func(a, b any) bool { return reflect.ValueOf(a).Len() == 0 && reflect.ValueOf(b).Len() == 0 }, cmp.Ignore()))
		if diff := cmp.Diff(c.want, got, empty); err != nil || diff != "" {
			t.Errorf("%q: %v; got this instead of what is wanted (-want +got):\n%s", c.line, err, diff)
		}
	}
}

// What a flag would destroy is refused, with the reason.
func TestDangerousValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"--grace-period=0", "would kill at once"},
		{"--ignore-daemonsets=false", "daemonSets: Last"},
		{"--settle=-1s", "must not be negative"},
		{"--escalate=delete", "such as delete=10m"},
		{"--escalate=delete=10m,30s", "must have grace= with whole seconds"},
		{"--escalate=delete=10m,grace=0s", "at least 1s"},
		{"--escalate=delete=0", "more than 0"},
		{"--escalate=kill=1m", "the only step is delete"},
		{"--escalate=out-of-service=1m", "needs proof that the machine is off"},
		{"--pod-selector=a=(", "must be a label selector"},
		{"--pod-selector=a>5", "must do without the operator"},
		{"--disable-eviction --escalate=delete=5m", "leave --escalate out"},
		{"--skip-wait-for-delete-timeout=-5", "must be a number of seconds"},
	} {
		var s Plan
		if err := parse(&s, append(strings.Fields(c.line), "n1")...); err != nil {
			t.Fatal(err)
		}
		_, err := s.Policy()
		var usage *UsageError
		var flag *FlagError
		if !errors.As(err, &usage) || !errors.As(err, &flag) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want a UsageError of a flag with %q", c.line, err, c.want)
		}
	}
}

// A pod is skipped exactly when the selector of kubectl drain wouldn't choose it.
func TestPodSelectorSkipsAllOthers(t *testing.T) {
	sets := []labels.Set{{}, {"a": "b"}, {"a": "x"}, {"a": "b", "c": ""}, {"c": "d"}, {"a": "z", "c": "d"}}
	for _, text := range []string{"", "a=b", "a==b,c", "a!=b", "a in (b,x)", "a notin (b,x)", "c", "!c", "a,!c", "a=b,a!=x"} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := skipOthers(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, set := range sets {
			skipped := false
			for _, r := range rules {
				s, err := metav1.LabelSelectorAsSelector(r.Selector)
				if err != nil {
					t.Fatal(err)
				}
				skipped = skipped || s.Matches(set)
			}
			if skipped == selector.Matches(set) {
				t.Errorf("%q, %s with labels %v: skipped is %v, want %v", text, corev1.ResourcePods, set, skipped, !skipped)
			}
		}
	}
}

// The values of kubectl's --dry-run have their meaning.
func TestDryRunHasTheValuesOfKubectl(t *testing.T) {
	for line, want := range map[string]DryRun{
		"n1": DryRunNone, "n1 --dry-run": DryRunClient, "n1 --dry-run=client": DryRunClient, "n1 " +
			"--dry-run=server": DryRunServer,
		"n1 --dry-run=none": DryRunNone, "n1 --dry-run=true": DryRunClient, "n1 --dry-run=false": DryRunNone,
	} {
		var s Drain
		if err := parse(&s, strings.Fields(line)...); err != nil || s.DryRun != want {
			t.Errorf("%q: got %q, %v, want %q", line, s.DryRun, err, want)
		}
	}
}

// The forms in which kubectl takes a node name the same node.
func TestNodesHaveTheFormsOfKubectl(t *testing.T) {
	var s Drain
	if err := parse(&s, "node/a", "nodes/b", "no/c", "Node/d", "e"); err != nil || strings.Join(s.Names,
		" ") != "a b c d e" {
		t.Errorf("got %q, %v, want the names without their kind", s.Names, err)
	}
}

// A flag without effect is said to be one, if it is given.
func TestFlagsWithoutEffectAreTold(t *testing.T) {
	var s Drain
	if err := parse(&s, "n1", "--chunk-size=5", "-n", "x"); err != nil {
		t.Fatal(err)
	}
	if notes := s.FlagNotes(); len(notes) != 2 || !strings.Contains(notes[0], "--namespace has no effect") ||
		!strings.Contains(notes[1], "--chunk-size has no effect") {
		t.Errorf("got %q, want one note each", notes)
	}
}

// Flags of the connection change the client as they do for kubectl.
func TestConnectionFlagsMakeTheClient(t *testing.T) {
	file := write(t, `
apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://one"}}, {name: two, cluster: {server: "https://two"}}]
users: [{name: jane, user: {token: janes}}, {name: joe, user: {token: joes}}]
contexts: [{name: first, context: {cluster: one, user: jane}}, {name: second, context: {cluster: two, user: joe}}]
current-context: first
`)
	for line, want := range map[string]string{
		"":                                   "https://one janes  []",
		"--context=second":                   "https://two joes  []",
		"--cluster=two":                      "https://two janes  []",
		"--user=joe":                         "https://one joes  []",
		"-s https://h --token=t":             "https://h t  []",
		"--as=ann --as-group=a --as-group=b": "https://one janes ann [a b]",
		"--request-timeout=3s":               "https://one janes  []",
	} {
		var s Plan
		if err := parse(&s, append(strings.Fields(line), "n1", "--kubeconfig="+file)...); err != nil {
			t.Fatal(err)
		}
		c, err := s.RESTConfig()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got := fmt.Sprintf("%s %s %s %v", c.Host, c.BearerToken, c.Impersonate.UserName, c.Impersonate.Groups)
		if got != want || c.Timeout != 0 || (s.RequestTimeout() == 3*time.Second) != strings.Contains(line, "timeout") {
			t.Errorf("%q: got %s, %s for a request, want %s", line, got, s.RequestTimeout(), want)
		}
	}
}
