// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/process"
)

const (
	// settled is how long a kubelet must live after its main loop has begun.
	settled = time.Second
	// searched are the directories of programs that a kubelet starts.
	searched = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// waitForLock ends the log of a kubelet that has validated its config and is told to look for a lock, and not
	// where.
	waitForLock = "no lock file specified"
)

// What begins the names of sandboxes, and of directories for a validation, before the process ID of their maker.
const (
	sandboxPrefix  = "belay-kubelet-"
	validatePrefix = "validate-"
)

var (
	errNotIsolated = errors.New("no sandbox can be made here")
	errTaken       = errors.New("another process holds it or has removed it")
)

// An outcome says how one run ended.
type outcome struct {
	refused  bool
	reason   string   // of a refusal
	unknown  []string // fields that the kubelet does not know and passes over
	unserved []string // fields that name a socket of a runtime which is not there
}

// makeLocked makes a directory for configs, and removes those of processes that were killed. remove removes it; until
// then it is locked.
func makeLocked(in, prefix string) (dir string, remove func() error, err error) {
	removeLeftovers(in, prefix, os.RemoveAll)
	dir, lock, err := makeAndLock(func() (string, error) {
		return os.MkdirTemp(in, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	})
	if err != nil {
		return "", nil, err
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// makeAndLock makes a directory and locks it. Before it is locked, another process may take it for a leftover: another
// is made then.
func makeAndLock(makeDir func() (string, error)) (dir string, lock *os.File, err error) {
	for range 10 {
		if dir, err = makeDir(); err != nil {
			return "", nil, err
		}
		if lock, err = lockDir(dir); !errors.Is(err, errTaken) {
			break // the other process removes what it has taken
		}
	}
	if err != nil {
		_ = os.Remove(dir) // unless the other process has
		return "", nil, err
	}
	return dir, lock, nil
}

// validate has the kubelet read and validate a document. The kubelet starts nothing.
func (p *prover) validate(ctx context.Context, doc []byte) (outcome, error) {
	dir, remove, err := makeLocked(p.o.Dir, validatePrefix)
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = remove() }() // the next run has a name of its own
	cmd, err := p.kubeletCommand(dir, doc)
	if err != nil {
		return outcome{}, err
	}
	cmd.Args = append(cmd.Args, "--exit-on-lock-contention")
	log := captureOutput(cmd)
	ctx, cancel := context.WithTimeoutCause(ctx, p.o.Timeout, errSlow)
	defer cancel()
	process.DieWithParent(cmd)
	err = process.Run(ctx, cmd)
	if err := exitedByItself(ctx, cmd, err); err != nil {
		return outcome{}, err
	}
	text := log.String()
	o := outcome{unknown: unknownFields(text)}
	if cmd.ProcessState.ExitCode() != 0 && strings.Contains(lastLine(text), waitForLock) {
		return o, nil
	}
	o.refused, o.reason = true, reasonOf(text, doc, dir)
	return o, nil
}

// start has the kubelet start in a sandbox.
func (p *prover) start(ctx context.Context, doc []byte) (o outcome, err error) {
	dir, remove, err := makeLocked(os.TempDir(), sandboxPrefix) // a socket's path must be short
	if err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	socket := filepath.Join(dir, "cri.sock")
	node := p.findEndpoints(ctx)
	d, err := editDocument(doc, socket, node)
	if err != nil {
		return outcome{}, fmt.Errorf("%w: %w", errNotIsolated, err)
	}
	runtime, err := startRuntime(socket, !lacksRuntimeConfig(ctx, node.runtimeSocket(d)))
	if err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, runtime.close()) }()
	box := &sandbox{dir: dir, cgroupNames: d.cgroups, sockets: d.sockets}
	defer func() { err = errors.Join(err, box.removeCgroups()) }()
	if err := box.makeCgroups(); err != nil {
		return outcome{}, fmt.Errorf("%w: %w", errNotIsolated, err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(awayServer), 0o600); err != nil {
		return outcome{}, err
	}
	cmd, err := p.kubeletCommand(dir, d.text)
	if err != nil {
		return outcome{}, err
	}
	cmd.Args = append(cmd.Args, "--kubeconfig="+kubeconfig)
	log := captureOutput(cmd)
	lives, err := p.observeRun(ctx, cmd, box, runtime)
	if err != nil || lives {
		return outcome{}, err
	}
	return outcome{refused: true, reason: reasonOf(log.String(), doc, dir), unserved: d.unserved}, nil
}

// findEndpoints says where the node has its runtime.
func (p *prover) findEndpoints(ctx context.Context) endpoints {
	e := endpoints{flag: p.flagNamed("container-runtime-endpoint")}
	if control, ok := p.controlDocument(ctx); ok {
		if doc, err := toJSON(control); err == nil {
			e.control, _ = textAt(doc, "containerRuntimeEndpoint")
		}
	}
	return e
}

// awayServer is the kubeconfig of an API server that does not answer: the network of the sandbox has nothing on that
// port.
const awayServer = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: none, user: {token: none}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

// observeRun runs a kubelet until it ends, or has lived long enough.
func (p *prover) observeRun(ctx context.Context, cmd *exec.Cmd, box *sandbox, runtime *standInRuntime) (lives bool,
	err error) {
	process.DieWithParent(cmd)
	group, err := process.StartPrepared(cmd, box.prepare)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errNotIsolated, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.o.Timeout, errSlow)
	defer cancel()
	defer func() { group.Signal(os.Kill); <-group.Done() }()
	select {
	case <-runtime.asked:
	case <-group.Done():
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	select {
	case <-time.After(settled):
		return true, nil
	case <-group.Done():
		return false, exitedByItself(ctx, cmd, group.Err())
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// exitedByItself returns nil if the kubelet exited with a status that says something.
func exitedByItself(ctx context.Context, cmd *exec.Cmd, err error) error {
	switch {
	case cmd.ProcessState == nil:
		return err // it could not be started
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case cmd.ProcessState.ExitCode() < 0:
		return errors.New("the kubelet was killed by a signal")
	case cmd.ProcessState.ExitCode() == 0:
		return errors.New("the kubelet ended without an error")
	}
	return nil
}

// kubeletCommand is the kubelet with a document, and directories of its own.
func (p *prover) kubeletCommand(dir string, doc []byte) (*exec.Cmd, error) {
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, doc, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.o.Program, keptFlags(p.o.Args)...)
	cmd.Args = append(cmd.Args, "--config="+config, "--root-dir="+filepath.Join(dir, "root"),
		"--cert-dir="+filepath.Join(p.o.Dir, "pki"))
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{searched, "LC_ALL=C", "TMPDIR=" + dir}, dir, settled
	return cmd, nil
}

// replacedFlags are those of a kubelet that the prover sets, or that would reach out of the sandbox.
var replacedFlags = map[string]bool{
	"config": true, "config-dir": true, "kubeconfig": true, "bootstrap-kubeconfig": true,
	"root-dir": true, "cert-dir": true,
	"lock-file": true, "exit-on-lock-contention": true, "container-runtime-endpoint": true, "image-service-endpoint": true,
	"pod-manifest-path": true, "manifest-url": true, "manifest-url-header": true, "log-file": true, "log-dir": true,
}

// flagOf splits an argument. hasValue is false if the next argument may be the value.
func flagOf(arg string) (name, value string, hasValue, ok bool) {
	name, ok = strings.CutPrefix(arg, "-")
	if !ok {
		return "", "", false, false
	}
	name, value, hasValue = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return strings.ReplaceAll(name, "_", "-"), value, hasValue, true
}

// keptFlags are the arguments without those that are replaced.
func keptFlags(args []string) (kept []string) {
	for i := 0; i < len(args); i++ {
		name, _, hasValue, ok := flagOf(args[i])
		if !ok || !replacedFlags[name] {
			kept = append(kept, args[i])
			continue
		}
		if _, _, _, isFlag := flagOf(next(args, i)); !hasValue && !isFlag && name != "exit-on-lock-contention" {
			i++
		}
	}
	return kept
}

func next(args []string, i int) string {
	if i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// flagNamed returns the value of a flag that the node starts its kubelet with.
func (p *prover) flagNamed(want string) string {
	for i, arg := range p.o.Args {
		if name, value, hasValue, ok := flagOf(arg); ok && name == want {
			if !hasValue {
				return next(p.o.Args, i)
			}
			return value
		}
	}
	return ""
}

// A sandboxDocument is a config for a kubelet in a sandbox.
type sandboxDocument struct {
	text     []byte
	cgroups  []string // that the config names
	sockets  []string // of runtimes that the config names
	unserved []string // fields that name no socket
}

// endpoints are what a node says of its runtime besides the config that is judged: by a flag, and in the control
// document.
type endpoints struct{ flag, control string }

// defaultRuntimeSocket is where the kubelet looks for a runtime if nothing names one.
const defaultRuntimeSocket = "/run/containerd/containerd.sock"

// runtimeSocket is the path of the node's runtime under a document; empty if nothing serves there.
func (e endpoints) runtimeSocket(d sandboxDocument) string {
	for _, url := range append(d.sockets, strings.TrimPrefix(e.flag, "unix://"), strings.TrimPrefix(e.control, "unix://"),
		defaultRuntimeSocket) {
		if url != "" && isSocket(url) {
			return url
		}
	}
	return ""
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// cgroupFields name cgroups that must exist, or that are used if they do.
var cgroupFields = []string{"cgroupRoot", "systemCgroups", "kubeletCgroups", "systemReservedCgroup",
	"kubeReservedCgroup"}

// editDocument takes out of a document what a sandbox must not do: run static pods. The runtime of the sandbox stands
// in for the one that the config names, at its path if there is one.
func editDocument(doc []byte, socket string, node endpoints) (sandboxDocument, error) {
	var d sandboxDocument
	raw, err := toJSON(doc)
	if err != nil {
		return d, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return d, err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for _, name := range []string{"staticPodPath", "staticPodURL", "staticPodURLHeader"} {
		delete(fields, name) // the kubelet has validated them already
	}
	for _, name := range cgroupFields {
		var cgroup string
		if json.Unmarshal(fields[name], &cgroup) == nil && cgroup != "" {
			d.cgroups = append(d.cgroups, cgroup)
		}
	}
	if err := d.placeRuntime(fields, socket, node); err != nil {
		return d, err
	}
	d.text, err = json.Marshal(fields)
	return d, err
}

// placeRuntime has the stand-in serve where the config expects a runtime. A path at which nothing serves is left as
// it is: the kubelet refuses it.
func (d *sandboxDocument) placeRuntime(fields map[string]json.RawMessage, socket string, node endpoints) error {
	own, err := json.Marshal("unix://" + socket)
	if err != nil {
		return err
	}
	const endpoint = "containerRuntimeEndpoint"
	if node.flag != "" {
		delete(fields, endpoint) // a flag is stronger
	}
	for _, name := range []string{endpoint, "imageServiceEndpoint"} {
		var url string
		_ = json.Unmarshal(fields[name], &url) // the kubelet has decoded it already
		path, isPath := strings.CutPrefix(url, "unix://")
		switch {
		case url == "" && name == endpoint && (node.flag != "" || node.control == "" || isSocket(defaultRuntimeSocket)):
			fields[name] = own
		case url == "" && name == endpoint:
			d.unserved = append(d.unserved, name) // the node has its runtime elsewhere
		case url == "":
		case isPath && isSocket(path):
			d.sockets = append(d.sockets, path)
		default:
			d.unserved = append(d.unserved, name)
		}
	}
	return nil
}
