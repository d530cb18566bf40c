// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// Parts of the time that an end of the kubelet waits for its attribution: 5 s in package restart.
const (
	hostTimeout    = 1500 * time.Millisecond
	runtimeTimeout = 3 * time.Second
)

// minFree is how much space a directory that a kubelet writes to must have left, in bytes.
const minFree = 1 << 20

// A Witness asks what lies below every config of a kubelet: whether the container runtime answers, whether the disks
// can be written, and whether the program can be executed. So an end of the kubelet for a reason that no config can
// mend is not blamed on one. Make it with [NewWitness]. It keeps nothing on disk.
type Witness struct {
	subject Subject

	lookAtHost func() error // checkHostNow; a system call to a broken disk may never return

	mu       sync.Mutex
	looking  *hostLook       // the look at the host that has not returned
	answered map[string]bool // the endpoints at which a runtime has answered
	failed   bool            // something below has failed since the last end of the kubelet
}

// NewWitness returns a Witness. The error is a *belay.OptionError.
func NewWitness(s Subject) (*Witness, error) {
	check := option.For("configsync/kubelet.NewWitness", nil)
	if len(s.Command) == 0 || s.Command[0] == "" {
		check.Require("Subject.Command", nil, "the command line of the kubelet")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	w := &Witness{subject: s, answered: map[string]bool{}}
	w.lookAtHost = w.subject.checkHostNow
	return w, nil
}

// AttributeExit completes what is known about an end of the kubelet that was not asked for, and that nothing else
// explains. If something below fails now, that is a [lkg.FaultEnvironment], and the signature names it. If all of it
// answers, and has answered at each look since the end before, the end is Witnessed. It returns within 4.5 s, or with
// ctx. It is made for Options.Attribute of package restart.
func (w *Witness) AttributeExit(ctx context.Context, e lkg.Exit) lkg.Exit {
	if w == nil || len(w.subject.Command) == 0 || e.Kind == lkg.ExitPlanned || e.Kind == lkg.ExitCounted || e.Fault != "" {
		return e
	}
	hostCtx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	host := w.checkHost(hostCtx)
	// A runtime that hangs answers with the end of this context: there must be time left to say so.
	runtimeCtx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	err := errors.Join(host, w.checkRuntime(runtimeCtx))
	w.mu.Lock()
	failed := w.failed
	w.failed = false
	w.mu.Unlock()
	var below *finding
	switch {
	case errors.Is(err, configsync.ErrBelow) && errors.As(err, &below):
		e.Fault, e.Signature = lkg.FaultEnvironment, below.signature
		e.Detail += "; not the config: " + below.Error()
	case err == nil && !failed:
		e.Witnessed = true
	}
	return e
}

// checkRuntime returns nil if the container runtime answers. At an endpoint of the config in use alone, no
// answer is that config's own fault, unless one has answered there before.
func (w *Witness) checkRuntime(ctx context.Context) error {
	endpoint, shared := w.subject.runtimeEndpoint()
	_, err := askRuntime(ctx, endpoint)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.answered[endpoint] = true
		return nil
	}
	text := fmt.Sprintf("the container runtime does not answer at %v", err)
	if !shared && !w.answered[endpoint] {
		return &finding{text: text +
			"; neither a flag nor the local config uses this endpoint, and no runtime has answered there"}
	}
	w.failed = true
	return &finding{text: text, is: configsync.ErrBelow, signature: "container runtime away: " + endpoint}
}

// A hostLook is one look at the host. Its result is there once done is closed.
type hostLook struct {
	done chan struct{}
	err  error
}

// checkHost returns nil if the kubelet's program can be executed and what it writes to is not full. A disk that does
// not answer within ctx is broken. While a look does not return, no second one is begun.
func (w *Witness) checkHost(ctx context.Context) error {
	w.mu.Lock()
	look := w.looking
	if look == nil {
		look = &hostLook{done: make(chan struct{})}
		w.looking = look
		go w.finishLook(look)
	}
	w.mu.Unlock()
	var err error
	select {
	case <-look.done:
		err = look.err
	case <-ctx.Done():
		err = &finding{text: fmt.Sprintf("a disk does not answer: %v", ctx.Err()), is: configsync.ErrBelow,
			signature: "disk does not answer"}
	}
	if err != nil {
		w.mu.Lock()
		w.failed = true
		w.mu.Unlock()
	}
	return err
}

// finishLook looks at the host, for all who wait for it. It turns a panic into a plain failure.
func (w *Witness) finishLook(look *hostLook) {
	defer func() {
		if r := recover(); r != nil {
			look.err = newFailure("the host can't be looked at: panic of type %T", r)
		}
		w.mu.Lock()
		w.looking = nil
		w.mu.Unlock()
		close(look.done)
	}()
	look.err = w.lookAtHost()
}

// checkHostNow looks at the program and at the directories that are written to. It may hang with a disk.
func (s *Subject) checkHostNow() error {
	err := checkProgram(s.Command[0])
	for _, dir := range s.writtenDirectories() {
		if err != nil {
			break
		}
		err = checkDirectory(dir)
	}
	return err
}

// checkProgram looks at the program: what it begins with, and whether it may be executed.
func checkProgram(path string) error {
	broken := func(format string, args ...any) error {
		return &finding{
			text: fmt.Sprintf("the program %s ", path) + fmt.Sprintf(format,
				args...), is: configsync.ErrBelow, signature: "program can't be executed: " + path,
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return broken("can't be looked at: %v", errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return broken("has mode %s, want a file that may be executed", info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return broken("can't be read: %v", errors.Unwrap(err))
	}
	defer func() { _ = f.Close() }() // opened for reading only
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	switch text := string(head[:n]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return broken("can't be read: %v", err)
	case strings.HasPrefix(text, "#!"):
		return nil
	case text != "\x7fELF":
		return broken("has %d bytes and begins with %q, want an ELF file or a script", info.Size(), text)
	}
	want, err := elfSize(f)
	switch {
	case err != nil:
		return broken("has %d bytes and is no whole ELF file: %v", info.Size(), err)
	case uint64(info.Size()) < want: //nolint:gosec // a file has no negative size
		return broken("has %d bytes, want %d: it is cut off", info.Size(), want)
	}
	return nil
}

// elfSize returns how many bytes a program has at least, by what its headers say about its parts.
func elfSize(r io.ReaderAt) (size uint64, err error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return 0, err
	}
	for _, p := range f.Progs {
		size = max(size, p.Off+p.Filesz)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS {
			size = max(size, s.Offset+s.FileSize)
		}
	}
	return size, nil
}

// checkDirectory looks at the file system of a directory, or of the nearest one above it that is there.
func checkDirectory(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		why, err := fullDisk(dir)
		switch {
		case errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			why = fmt.Sprintf("can't be looked at: %v", err)
		case why == "":
			return nil
		}
		return &finding{text: fmt.Sprintf("the disk of %s %s", dir, why), is: configsync.ErrBelow,
			signature: "disk full or broken: " + dir}
	}
}

// Subject says which kubelet is looked at. Its functions may be called from several goroutines.
type Subject struct {
	// Command is the command line of the kubelet, the program first. A flag is stronger than the config, as for the
	// kubelet.
	Command []string
	// Config returns the config in use as one JSON document, as the kubelet reads it after all its parts are merged; nil
	// while nothing runs. Fields that are not known are passed over. Nil means that only the command line is known.
	Config func() []byte
	// Local returns the config that the node was provisioned with, as JSON. What it and the command line name lies below
	// every config. A runtime that neither names is not known to be needed, and what only another config names is
	// that config's own choice. Nil means that there is none.
	Local func() []byte
	// PID returns the process ID of the kubelet that runs, 0 if none does. Supervisor.PID of package restart does. Nil
	// means that starts can't be told apart.
	PID func() int
	// StateDir is the directory in which the agent keeps its records. Empty means none.
	StateDir string
}

// The kubelet's own defaults.
const (
	defaultEndpoint = "unix:///run/containerd/containerd.sock"
	defaultRootDir  = "/var/lib/kubelet"
	defaultLogDir   = "/var/log/pods"
	defaultPort     = 10250
)

// settings are the fields of a KubeletConfiguration that say where its parts are.
type settings struct {
	Address                  string `json:"address"`
	Port                     int    `json:"port"`
	EnableServer             *bool  `json:"enableServer"`
	ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	PodLogsDir               string `json:"podLogsDir"`
}

// settingsOf reads a document. What can't be read says nothing; known is false for it, and where there is none.
func settingsOf(document func() []byte) (s settings, known bool) {
	if document == nil {
		return settings{}, false
	}
	text := document()
	if len(text) == 0 || json.Unmarshal(text, &s) != nil {
		return settings{}, false
	}
	return s, true
}

// flagValue returns the value of a flag of the kubelet; the last one wins. A kubelet takes "_" in a name for "-".
func (s *Subject) flagValue(name string) (value string, ok bool) {
	for i := 1; i < len(s.Command); i++ {
		arg := s.Command[i]
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		key, given, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.ReplaceAll(key, "_", "-") != name {
			continue
		}
		if !has && i+1 < len(s.Command) {
			i++
			given = s.Command[i]
		}
		value, ok = given, true
	}
	return value, ok
}

// runtimeEndpoint returns the address of the container runtime. shared says that every config uses it: the command
// line or the local config names it. Where none names one, nothing says that the program needs a runtime.
func (s *Subject) runtimeEndpoint() (endpoint string, shared bool) {
	if endpoint, ok := s.flagValue("container-runtime-endpoint"); ok && endpoint != "" {
		return endpoint, true
	}
	used, _ := settingsOf(s.Config)
	local, _ := settingsOf(s.Local)
	if used.ContainerRuntimeEndpoint == "" {
		return defaultEndpoint, false
	}
	return used.ContainerRuntimeEndpoint, used.ContainerRuntimeEndpoint == local.ContainerRuntimeEndpoint
}

// servingAddress returns host and port of the kubelet's API; ok is false where the config switches it off.
func (s *Subject) servingAddress() (hostPort string, ok bool) {
	used, _ := settingsOf(s.Config)
	host, port := used.Address, used.Port
	if v, given := s.flagValue("address"); given {
		host = v
	}
	if v, given := s.flagValue("port"); given {
		port, _ = strconv.Atoi(v) // a kubelet with a wrong flag does not start
	}
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() {
		host = "127.0.0.1" // it listens on all addresses, this one too
	}
	if port == 0 {
		port = defaultPort
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), used.EnableServer == nil || *used.EnableServer
}

// writtenDirectories returns those that a kubelet and its agent write to.
func (s *Subject) writtenDirectories() []string {
	root, ok := s.flagValue("root-dir")
	if !ok || root == "" {
		root = defaultRootDir
	}
	local, _ := settingsOf(s.Local)
	all := []string{filepath.Clean(root), filepath.Clean(cmp.Or(local.PodLogsDir, defaultLogDir))}
	if s.StateDir != "" {
		all = append(all, filepath.Clean(s.StateDir))
	}
	return all
}
