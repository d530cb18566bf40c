// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectldrain

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd/drain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/belayproject/belay/internal/testenv"
)

// A habit is a command line as a user of kubectl types it. NODE is the node with the pods, OLD its label.
type habit struct {
	line string
	pods func(*testing.T, *place)
	// fails means that kubectl's command fails too.
	fails bool
	// better means that kubectl's command fails, and ours drains the node.
	better bool
	left   []string // the apps of the pods that stay on the node
}

func habits() []habit {
	return []habit{
		{line: "drain NODE --ignore-daemonsets", pods: plain, left: []string{"agent"}},
		{line: "drain node/NODE --ignore-daemonsets --delete-emptydir-data", pods: withData, left: []string{"agent"}},
		{line: "drain nodes/NODE --ignore-daemonsets --force", pods: bare, left: []string{"agent"}},
		{line: "drain -l old=OLD --ignore-daemonsets --timeout=120s", pods: plain, left: []string{"agent"}},
		{line: "drain NODE --ignore-daemonsets --dry-run=client", pods: plain, left: []string{"agent", "web", "web"}},
		{line: "drain NODE --ignore-daemonsets --dry-run=server", pods: plain, left: []string{"agent", "web", "web"}},
		{line: "drain NODE --ignore-daemonsets --grace-period=2 --timeout=2m -v=0", pods: plain, left: []string{"agent"}},
		{line: "drain NODE --ignore-daemonsets --pod-selector=app=web", pods: two, left: []string{"agent", "db"}},
		{line: "drain NODE --ignore-daemonsets --disable-eviction", pods: guarded, left: []string{"agent"}},
		{line: "drain NODE --ignore-daemonsets --as=AS --as-group=system:masters --request-timeout=30s --chunk-size=100 " +
			"-n default",
			pods: plain, left: []string{"agent"}},
		{line: "drain NODE --ignore-daemonsets --skip-wait-for-delete-timeout=60", pods: plain, left: []string{"agent"}},
		{line: "cordon node/NODE", pods: plain, left: []string{"agent", "web", "web"}},
		{line: "uncordon NODE", pods: plain, left: []string{"agent", "web", "web"}},
		{line: "drain NODE --ignore-daemonsets --timeout=8s", pods: guarded, fails: true, left: []string{"agent", "web",
			"web"}},
		{line: "drain pod/NODE --ignore-daemonsets", pods: plain, fails: true, left: []string{"agent", "web", "web"}},
		{line: "drain NODE", pods: plain, better: true, left: []string{"agent"}},
		{line: "drain NODE --ignore-daemonsets --timeout=10s", pods: bareBeside, better: true, left: []string{"agent",
			"tool"}},
	}
}

// Everyday lines of kubectl drain do the same, typed unchanged, as in kubectl's own command, or better.
func TestLinesOfKubectl(t *testing.T) {
	for _, h := range habits() {
		t.Run(h.line, func(t *testing.T) {
			theirs, mine := newPlace(t), newPlace(t)
			h.pods(t, theirs)
			h.pods(t, mine)
			outTheirs, errTheirs := runKubectl(t, theirs.fill(h.line))
			outMine, codeMine := runOurs(t, mine.fill(h.line))
			if failed := errTheirs != nil; failed != (h.fails || h.better) {
				t.Fatalf("kubectl: got error %v, want one: %v\n%s", errTheirs, h.fails || h.better, outTheirs)
			}
			// With a pod that alone stays, ours says so by its exit code, and has drained the rest.
			if failed := codeMine != 0; failed != (h.fails || slices.Contains(h.left, "tool")) {
				t.Errorf("ours: got exit code %d\n%s", codeMine, outMine)
			}
			if left := mine.left(t); !slices.Equal(left, h.left) {
				t.Errorf("ours: pods of %q are left, want those of %q\n%s", left, h.left, outMine)
			}
			if left := theirs.left(t); !h.better && !slices.Equal(left, h.left) {
				t.Errorf("kubectl: pods of %q are left, want those of %q\n%s", left, h.left, outTheirs)
			}
			if a, b := mine.cordoned(t), theirs.cordoned(t); a != b {
				t.Errorf("got the node cordoned %v, kubectl %v\n%s", a, b, outMine)
			}
		})
	}
}

// runAsKubectl, in the environment of this test, has it run kubectl's own command in place of its tests.
const runAsKubectl = "BELAY_TEST_RUN_AS_KUBECTL"

// runKubectl runs kubectl's own command in a process of its own: kubectl v0.37.2 has a data race of its own
// (pkg/cmd/drain/drain.go, line 276), which is not what is tested here.
func runKubectl(t *testing.T, args []string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*placeReady)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), runAsKubectl+"=1", "GORACE=exitcode=0")
	out, err := c.CombinedOutput()
	return string(out), err
}

// executeKubectl is kubectl's own command in this process. It returns the exit code.
func executeKubectl(args []string) int {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := &cobra.Command{Use: "kubectl", SilenceUsage: true}
	flags := genericclioptions.NewConfigFlags(true)
	flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().IntP("v", "v", 0, "verbosity")
	factory := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
	root.AddCommand(kubectl.NewCmdDrain(factory, streams), kubectl.NewCmdCordon(factory, streams),
		kubectl.NewCmdUncordon(factory, streams))
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		return 1
	}
	return 0
}

// runOurs runs our command with the same line: drain is the name of the program.
func runOurs(t *testing.T, args []string) (output string, code int) {
	t.Helper()
	if args[0] == "drain" {
		args = args[1:]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*placeReady)
	defer cancel()
	out, err := exec.CommandContext(ctx, programs.Path(t, "github.com/belayproject/belay/examples/drain"),
		args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return string(out), exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return string(out), 0
}

// fill replaces what a line says of the place.
func (p *place) fill(line string) []string {
	names := strings.NewReplacer("NODE", p.node, "OLD", p.namespace, "AS", "jane-of-"+p.namespace)
	return append(strings.Fields(names.Replace(line)), "--kubeconfig="+p.kubeconfig)
}

func (p *place) get(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := p.client.CoreV1().Nodes().Get(t.Context(), p.node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (p *place) cordoned(t *testing.T) bool { return p.get(t).Spec.Unschedulable }

// left names the apps of the pods on the node, sorted.
func (p *place) left(t *testing.T) []string {
	t.Helper()
	list, err := p.client.CoreV1().Pods(p.namespace).List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + p.node})
	if err != nil {
		t.Fatal(err)
	}
	var apps []string
	for i := range list.Items {
		apps = append(apps, list.Items[i].Labels["app"])
	}
	slices.Sort(apps)
	return apps
}

// login makes the kubeconfig of an administrator.
func login(t *testing.T, env *testenv.Env, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testenv.WriteKubeconfig(path, env.User(t, user, "system:masters")); err != nil {
		t.Fatal(err)
	}
	return path
}
