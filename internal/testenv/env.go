// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/testenv/reaper"
)

// Admin is whom the API server takes the clients of [Env.Config] for: for an audit policy.
const Admin = "belay-admin"

const (
	auditPolicyFile = "audit-policy.yaml"
	startTimeout    = 60 * time.Second // for one server to be ready
)

// Options says what is started besides etcd and the API server. The zero value is what most tests need.
type Options struct {
	// With names further servers, any of [ControllerManager], [Scheduler] and [Kwok].
	With []Component
	// Args holds flags that are appended to those of a server; where both set one, these win.
	Args map[Component][]string
	// AuditPolicy is an audit policy in YAML. Empty means no audit; otherwise [Env.AuditLog] holds the events.
	AuditPolicy string
	// Progress gets a line where servers have to be compiled first. Nil means standard error.
	Progress io.Writer
	// Prepared, which may be nil, is called with the path of the administrator's kubeconfig as soon as that is written:
	// before a server is compiled or started.
	Prepared func(kubeconfig string)
	// Begin is waited for before the first server is started, when all are compiled. An error ends the start. Nil means
	// that they start at once.
	Begin func(ctx context.Context) error
}

// validate refuses what would start no server, or one twice.
func (o Options) validate() error {
	known := servers()
	for i, name := range o.With {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("starting %q: it is not a server of the control plane", name)
		}
		if name == Etcd || name == APIServer || slices.Contains(o.With[:i], name) {
			return fmt.Errorf("starting %q: it is named twice, or always started", name)
		}
	}
	for name := range o.Args {
		if name != Etcd && name != APIServer && !slices.Contains(o.With, name) {
			return fmt.Errorf("passing flags to %q: it is not started", name)
		}
	}
	return nil
}

// Env is a running control plane on 127.0.0.1. Its methods may be called concurrently.
type Env struct {
	options  Options
	programs binaries.Set
	reaper   *reaper.Reaper
	pki      *pki
	claims   ports
	ports    map[Component]int
	peerPort int // etcd's port for its peers, of which there are none

	admin, etcdClient tls.Certificate // for probes
	config            *rest.Config    // of the administrator
	kubeconfig        string          // path of the same

	processes map[Component]*Process
}

// New starts a control plane and returns once it is ready, about 3 s later; ctx bounds the start alone. Where ctx ends
// first, and nothing is left of what was started, the error is that of ctx itself. Where
// servers must be compiled first it takes minutes and says so. The caller ends it with [Env.Close]; it ends with
// the calling process as well, however that ends.
func New(ctx context.Context, options Options) (*Env, error) {
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	programs, err := binaries.Ensure(ctx, options.Progress, binaries.Reaper)
	if err != nil {
		return nil, err
	}
	r, err := reaper.New(programs[binaries.Reaper])
	if err != nil {
		return nil, err
	}
	e := &Env{
		options: options, reaper: r,
		ports: map[Component]int{}, processes: map[Component]*Process{},
	}
	if err := e.start(ctx); err != nil {
		left := e.Close()
		if left == nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errors.Join(err, left)
	}
	return e, nil
}

// start brings up the servers in the order in which they need each other.
func (e *Env) start(ctx context.Context) error {
	if err := e.prepare(); err != nil {
		return err
	}
	if e.options.Prepared != nil {
		e.options.Prepared(e.kubeconfig)
	}
	var err error
	names := slices.Concat([]Component{binaries.Reaper, Etcd, APIServer}, e.options.With)
	if e.programs, err = binaries.Ensure(ctx, e.options.Progress, names...); err != nil {
		return err
	}
	if e.options.Begin != nil {
		if err := e.options.Begin(ctx); err != nil {
			return fmt.Errorf("waiting for the order to begin: %w", err)
		}
	}
	for _, name := range []Component{Etcd, APIServer} {
		if err := e.add(ctx, name); err != nil {
			return err
		}
	}
	if err := e.bootstrap(ctx); err != nil {
		return err
	}
	for _, name := range e.options.With {
		if err := e.add(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes all that the servers read at their start.
func (e *Env) prepare() error {
	var err error
	if e.pki, err = newPKI(filepath.Join(e.Dir(), "pki")); err != nil {
		return err
	}
	if e.peerPort, err = e.claims.take(); err != nil {
		return err
	}
	if e.etcdClient, err = tls.LoadX509KeyPair(e.pki.cert("etcd-client"), e.pki.key("etcd-client")); err != nil {
		return fmt.Errorf("loading a certificate: %w", err)
	}
	if policy := e.options.AuditPolicy; policy != "" {
		if err := os.WriteFile(filepath.Join(e.Dir(), auditPolicyFile), []byte(policy), 0o600); err != nil {
			return fmt.Errorf("writing the audit policy: %w", err)
		}
	}
	for _, name := range slices.Concat([]Component{Etcd, APIServer}, e.options.With) {
		if e.ports[name], err = e.claims.take(); err != nil {
			return err
		}
	}
	return e.prepareAdmin()
}

// prepareAdmin makes the administrator's certificate and kubeconfig.
func (e *Env) prepareAdmin() error {
	pair, err := e.pki.cluster.client(Admin, "system:masters")
	if err != nil {
		return err
	}
	if e.admin, err = tls.X509KeyPair(pair.cert, pair.key); err != nil {
		return fmt.Errorf("loading a certificate: %w", err)
	}
	e.config = e.clientConfig(pair)
	e.kubeconfig = filepath.Join(e.Dir(), "kubeconfig")
	return WriteKubeconfig(e.kubeconfig, e.config)
}

// add starts one server.
func (e *Env) add(ctx context.Context, name Component) error {
	s := servers()[name]
	kubeconfig, err := e.serverKubeconfig(name, s.user)
	if err != nil {
		return err
	}
	port := e.ports[name]
	argv := slices.Concat([]string{e.programs[name]}, s.args(e, port, kubeconfig), e.options.Args[name])
	p := e.Process(string(name), argv, s.probe(e, port).ask)
	e.processes[name] = p
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.Start(ctx)
}

// serverKubeconfig writes the kubeconfig of a server that is a client of the API server.
func (e *Env) serverKubeconfig(name Component, user string) (string, error) {
	if user == "" {
		return "", nil
	}
	var groups []string
	if name == Kwok {
		groups = []string{"system:masters"}
	}
	config, err := e.NewUser(user, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(e.Dir(), string(name)+".kubeconfig")
	return path, WriteKubeconfig(path, config)
}

// Process prepares a further process that ends with the control plane, for example an agent under test. argv holds
// the program's path and its arguments; ready is asked until it returns nil, and may be nil. The caller starts it.
func (e *Env) Process(name string, argv []string, ready func(context.Context) error) *Process {
	return &Process{name: name, argv: argv, log: filepath.Join(e.Dir(), name+".log"), mark: e.reaper.Mark, ready: ready}
}

// Mark makes the process that cmd will start, and its descendants, end with the control plane, for commands that
// are not run through [Env.Process]. It must be called before cmd's start and sets cmd.Env.
func (e *Env) Mark(cmd *exec.Cmd) { e.reaper.Mark(cmd) }

// Server returns a server of the control plane, or nil where it was not asked for.
func (e *Env) Server(name Component) *Process { return e.processes[name] }

// APIServer returns the API server, to be killed, frozen and started again.
func (e *Env) APIServer() *Process { return e.processes[APIServer] }

// Port returns a port on 127.0.0.1 for a further server. No other control plane is given it while this one lives.
func (e *Env) Port() (int, error) { return e.claims.take() }

// Exclusive waits until no other control plane on this machine holds the name and holds it until this one ends,
// for things of which a machine has only one.
func (e *Env) Exclusive(ctx context.Context, name string) error { return e.claims.hold(ctx, name) }

// CAFile returns the path of the certificate authority that signs the cluster's clients and servers.
func (e *Env) CAFile() string { return e.pki.cert("cluster-ca") }

// WriteServerCert issues a certificate for a server on 127.0.0.1 that the cluster trusts, also under the names.
func (e *Env) WriteServerCert(certFile, keyFile string, names ...string) error {
	pair, err := e.pki.cluster.server(names...)
	if err != nil {
		return err
	}
	return writePair(certFile, keyFile, pair)
}

// Dir returns the directory that is removed with the control plane, mode 0700. The logs of the servers lie in it.
func (e *Env) Dir() string { return e.reaper.Dir() }

// ID returns the identifier, 16 hexadecimal digits, by which the reaper knows cgroups and networks: those whose
// name ends with "-" and the identifier end with the control plane.
func (e *Env) ID() string { return e.reaper.ID() }

// AuditLog returns the path of the API server's audit log, one event a line in JSON. It exists where
// [Options.AuditPolicy] was given.
func (e *Env) AuditLog() string { return filepath.Join(e.Dir(), "audit.log") }

// Close kills the servers and every other process of the control plane, removes its directory, and returns what
// could not be removed. It may be called more than once.
func (e *Env) Close() error {
	var errs []error
	for _, p := range e.processes {
		errs = append(errs, p.Kill())
	}
	errs = append(errs, e.reaper.Close(), e.claims.release())
	return errors.Join(errs...)
}
