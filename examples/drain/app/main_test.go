// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

// The end-to-end tests run the command as people do, on a control plane whose pods are scheduled, run and are replaced.

// Its nodes may be silent for as long as a test takes: on a busy machine they would be called not ready, and a pod that is not ready may be evicted
// whatever its budget.
var shared = testenv.Shared{Options: testenv.Options{
	With:        []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
	Args:        map[testenv.Component][]string{testenv.ControllerManager: {"--node-monitor-grace-period=30m"}},
	AuditPolicy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, userGroups: [\"drain-test\"]}]\n",
}}

var programs e2e.Programs

func TestMain(m *testing.M) { os.Exit(programs.Main(m, &shared)) }

// runTimeout bounds one run of the command.
const runTimeout = 2 * time.Minute

// process is one run of the command.
type process struct {
	cmd       *exec.Cmd
	out, errs *testproc.Buffer
	done      chan struct{}
}

// start runs the command with args.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	path := programs.Path(t, "github.com/belayproject/belay/examples/drain")
	p := &process{cmd: exec.Command(path, args...), out: &testproc.Buffer{}, errs: &testproc.Buffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
	p.begin(t)
	return p
}

// begin starts the process, which ends with the test at the latest.
func (p *process) begin(t *testing.T) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is asked for
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
}

func (p *process) String() string { return fmt.Sprintf("stdout:\n%sstderr:\n%s", p.out, p.errs) }

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	limit := time.NewTimer(runTimeout)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-limit.C:
		t.Fatalf("%q didn't end within %s\n%s", p.cmd.Args, runTimeout, p)
	}
	return p.cmd.ProcessState.ExitCode()
}

// ends checks how the command ends.
func (p *process) ends(t *testing.T, want int) {
	t.Helper()
	if code := p.wait(t); code != want {
		t.Fatalf("%q: got exit code %d, want %d\n%s", p.cmd.Args[1:], code, want, p)
	}
}

// says checks what has been printed.
func (p *process) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.out.String(), text) {
			t.Errorf("%q: got no %q\n%s", p.cmd.Args[1:], text, p)
		}
	}
}

// until waits until a text has been printed.
func (p *process) until(t *testing.T, text string) {
	t.Helper()
	e2e.Eventually(t, time.Minute, "the command says it", func() error {
		if strings.Contains(p.out.String()+p.errs.String(), text) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("ended without %q: %w\n%s", text, e2e.ErrHopeless, p)
		default:
			return fmt.Errorf("no %q yet\n%s", text, p)
		}
	})
}

// A wrong line ends with the code for it before anything is asked of a cluster, and says what would be right.
func TestUsageErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(bad, []byte("localdata: Evict\nsettle: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, want string
	}{
		{"", "give the names of nodes, or --selector"},
		{"n1 --grace-period=0", "would kill at once"},
		{"n1 --disable-eviction --escalate=delete=5m", "leave --escalate out"},
		{"pod/n1", "is no node"},
		{"cordon", "give the names of nodes"},
		{"uncordon n1 --dry-run=maybe", "must be none, client or server"},
		{"n1 --ignore-daemonsets=false", "daemonSets: Last"},
		{"n1 --policy=" + bad, "settle: is 5: must be a duration"},
		{"plan n1 --policy=" + bad, "localdata: is not known; known are"},
		{"n1 --policy=/nowhere", "no such file"},
		{"n1 --honor=do-not-evict", "must be karpenter.sh/do-not-disrupt or cluster-autoscaler.kubernetes.io/safe-to-evict"},
		{"n1 --escalate=kill=5m", "the only step is delete"},
		{"release", "give the names of nodes"},
		{"hold n1", "--for"},
		{"resume n1", "resume takes no names"},
		{"n1 --nonsense", "unknown flag"},
		{"n1 --dry_run=maybe", "must be none, client or server"},
	} {
		p := start(t, append(strings.Fields(c.line), "--kubeconfig=/nowhere")...)
		p.ends(t, exitUsage)
		if got := p.errs.String(); !strings.HasPrefix(got, "drain: ") || !strings.Contains(got, c.want) || p.out.String() != "" {
			t.Errorf("%q: got %q on standard error and %q on standard output, want %q alone", c.line, got, p.out, c.want)
		}
	}
}

func TestWhatIsNotAboutTheLineIsAnError(t *testing.T) {
	p := start(t, "n1", "--kubeconfig=/nowhere")
	p.ends(t, exitError)
	if got := p.errs.String(); !strings.Contains(got, "/nowhere") {
		t.Errorf("got %q, want the name of the kubeconfig", got)
	}
}

func TestHelpListsTheExitCodes(t *testing.T) {
	p := start(t, "--help")
	p.ends(t, exitDone)
	p.says(t, exitCodes, "--max-nodes", "drain -- plan")
	if strings.Contains(p.out.String(), "warnings-as-errors") {
		t.Errorf("the help offers what is refused\n%s", p)
	}
}

// The program is a plugin of kubectl under the name that it has on the PATH.
func TestProgramIsAPlugin(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/drain": "drain", "app.test": "drain", "kubectl-node_drain": "kubectl node-drain",
		"/opt/kubectl-belay-drain": "kubectl belay drain",
	} {
		if got := programName(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	plugin := filepath.Join(t.TempDir(), "kubectl-belay-drain")
	if err := os.Symlink(programs.Path(t, "github.com/belayproject/belay/examples/drain"), plugin); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), plugin, "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kubectl belay drain [command]") {
		t.Errorf("got error %v, want help that has the name of the plugin\n%s", err, out)
	}
}

func TestExitCodes(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		err  error
		code int
		said error
	}{
		{nil, exitDone, nil},
		{boom, exitError, boom},
		{settings.Usage(boom), exitUsage, boom},
		{fmt.Errorf("over there: %w", &codedError{code: exitInterrupted, err: boom}), exitInterrupted, boom},
		{&codedError{code: exitBlocked}, exitBlocked, nil},
	} {
		if code, said := exitCode(c.err); code != c.code || !errors.Is(said, c.said) {
			t.Errorf("exitCode(%v): got %d and %v, want %d and %v", c.err, code, said, c.code, c.said)
		}
	}
}

// R-DR-16: whoever starts the command can count by its code.
func TestTheWorstNodeGivesTheCode(t *testing.T) {
	drained := drain.Status{Phase: drain.Drained, Outcome: drain.OutcomeForced}
	blocked := drain.Status{Phase: drain.Draining, Outcome: drain.OutcomeBlocked}
	failed := drain.Status{Phase: drain.Failed, Outcome: drain.OutcomeFailed}
	waiting := drain.Status{Phase: drain.Pending, Reason: "WaitingForSlot"}
	for _, c := range []struct {
		nodes []drain.Status
		want  int
	}{
		{[]drain.Status{drained, {Phase: drain.Released}, {Phase: drain.HoldEnded}}, exitDone},
		{[]drain.Status{drained, waiting}, exitBlocked},
		{[]drain.Status{blocked, drained}, exitBlocked},
		{[]drain.Status{blocked, failed, drained}, exitError},
	} {
		if got := codeOf(drain.SetStatus{Nodes: c.nodes}); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.nodes, got, c.want)
		}
	}
}
