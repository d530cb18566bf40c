// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/etcd"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// A stage is three real etcds that take no client without a certificate, each on a machine of a controller.
type stage struct {
	t         *testing.T
	binary    string
	dir       string
	ports     map[string][2]int // client and peer
	processes map[string]*exec.Cmd
	client    *etcd.Client

	store *controllertest.Store
	cloud *machinetest.Memory
	ctl   *controller.Controller
	// left is how often a member was taken out, dies that the controller does so right after the first.
	left  int
	dies  bool
	asked int // gates
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), ports: map[string][2]int{}, processes: map[string]*exec.Cmd{}}
	s.binary = testenv.EnsurePrograms(t, binaries.Etcd)[binaries.Etcd]
	config := s.certificates()
	var endpoints []string
	for _, name := range names() {
		s.ports[name] = [2]int{testenv.Port(t), testenv.Port(t)}
		endpoints = append(endpoints, fmt.Sprintf("https://127.0.0.1:%d", s.ports[name][0]))
	}
	for _, name := range names() {
		s.start(name)
	}
	var err error
	s.client, err = etcd.New(etcd.Options{Endpoints: endpoints, TLS: config, CallTimeout: 3 * time.Second})
	s.must(err)
	s.settled("c0=true c1=true c2=true")
	return s
}

func names() []string { return []string{"c0", "c1", "c2"} }

// certificates makes one pair that serves all, and returns the config of a client with it.
func (s *stage) certificates() *tls.Config {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	s.must(err)
	secret, err := x509.MarshalECPrivateKey(key)
	s.must(err)
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pair := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	s.must(errors.Join(os.WriteFile(filepath.Join(s.dir, "crt"), crt, 0o600), os.WriteFile(filepath.Join(s.dir, "key"), pair, 0o600)))
	both, err := tls.X509KeyPair(crt, pair)
	s.must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(crt)
	return &tls.Config{Certificates: []tls.Certificate{both}, RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// start runs the etcd of a machine; one that was killed goes on with its data.
func (s *stage) start(name string) {
	s.t.Helper()
	var cluster []string
	for _, n := range names() {
		cluster = append(cluster, fmt.Sprintf("%s=http://127.0.0.1:%d", n, s.ports[n][1]))
	}
	client, peer := fmt.Sprintf("https://127.0.0.1:%d", s.ports[name][0]), fmt.Sprintf("http://127.0.0.1:%d", s.ports[name][1])
	crt, key := filepath.Join(s.dir, "crt"), filepath.Join(s.dir, "key")
	cmd := exec.Command(s.binary, "--name="+name, "--data-dir="+filepath.Join(s.dir, name), "--unsafe-no-fsync", "--log-level=error", //nolint:noctx // killed below
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster="+strings.Join(cluster, ","), "--heartbeat-interval=200", "--election-timeout=2000",
		"--client-cert-auth", "--trusted-ca-file="+crt, "--cert-file="+crt, "--key-file="+key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.must(cmd.Start())
	s.processes[name] = cmd
	s.t.Cleanup(func() { s.kill(name) })
}

func (s *stage) kill(name string) {
	if cmd := s.processes[name]; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s.processes[name] = nil
	}
}

// members are those of the cluster in words, as "c0=true c1=false".
func (s *stage) members() string {
	var machines []machine.Machine
	for _, name := range names() {
		machines = append(machines, host(name))
	}
	list, err := s.client.List(s.t.Context(), machines)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, m := range list {
		all = append(all, fmt.Sprintf("%s=%t", m.Machine.Name, m.Healthy))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *stage) settled(want string) {
	s.t.Helper()
	s.must(testproc.Poll(2*time.Minute, func() error {
		if got := s.members(); got != want {
			return fmt.Errorf("the members are %s, want %s", got, want)
		}
		return nil
	}))
}

// Leave is what the controller calls.
func (s *stage) Leave(ctx context.Context, m machine.Machine) (bool, string, error) {
	done, blocked, err := s.client.Leave(ctx, m)
	if done {
		if s.left++; s.dies && s.left == 1 {
			panic("the controller dies after the member was removed")
		}
	}
	return done, blocked, err
}

// power switches etcd off with its machine, and looks whether that is still a member then.
type power struct {
	*machinetest.Memory
	s *stage
}

func (p power) Stop(ctx context.Context, r provider.Ref) (provider.Progress, error) {
	if i, err := p.Get(ctx, r); err == nil {
		name := i.Owner.Name
		if got := p.s.members(); strings.Contains(got, name+"=") {
			p.s.t.Errorf("R-MA-23: %s is switched off, and the members are %s", name, got)
		}
		p.s.kill(name)
	}
	return p.Memory.Stop(ctx, r)
}

// asks counts a gate's questions.
type asks struct {
	controller.Gate
	s *stage
}

func (a asks) Check(ctx context.Context, m machine.Machine) (string, error) {
	a.s.asked++
	return a.Gate.Check(ctx, m)
}

// control begins a controller that knows nothing.
func (s *stage) control() {
	s.t.Helper()
	nodes := &controllertest.Cluster{Instances: s.cloud.Instances}
	ctl, err := controller.New(controller.Options{
		Cluster: "c", Machines: s.store, Nodes: nodes, Provider: power{s.cloud, s}, Undrained: true, Members: s,
		Gates: []controller.Gate{asks{controller.EndGate{Fleet: controller.Fleet{Machines: s.store, Members: s.client}}, s}},
	})
	s.must(err)
	s.ctl = ctl
}

// pass reconciles once; a controller that dies is followed by another one.
func (s *stage) pass(key machine.Key) {
	s.t.Helper()
	defer func() {
		if recover() != nil {
			s.control()
		}
	}()
	if _, err := s.ctl.Reconcile(s.t.Context(), key); err != nil {
		s.t.Log(err)
	}
}

// until reconciles until something is true of a machine.
func (s *stage) until(name, what string, true func(machine.Machine) bool) {
	s.t.Helper()
	key := host(name).Key
	s.must(testproc.Poll(2*time.Minute, func() error {
		s.pass(key)
		m, err := s.store.Live(s.t.Context(), key)
		if err == nil && !true(m) {
			err = fmt.Errorf("machine %q is not %s: phase %s, step %+v, failure %+v", name, what, m.Phase, m.Step, m.Failure)
		}
		return err
	}))
}

// R-MA-23, R-MA-25: with three real etcds, a machine of the control plane may not end while another member is down; then it leaves before it is switched off. The
// controller that dies in between is followed by one that goes on, though the two that are left could not spare one more.
func TestMemberLeavesBeforePowerOff(t *testing.T) {
	s := newStage(t)
	s.store, s.cloud, s.dies = &controllertest.Store{}, &machinetest.Memory{}, true
	s.control()
	for _, name := range names() {
		s.store.Put(host(name))
		s.until(name, "running", func(m machine.Machine) bool { return m.Phase == machine.PhaseRunning })
	}
	s.kill("c2")
	s.settled("c0=true c1=true c2=false")
	s.must(testproc.Poll(2*time.Minute, func() error { // while a leader is elected, members are blocked for that
		done, blocked, err := s.client.Leave(t.Context(), host("c0"))
		if done {
			t.Fatalf("R-MA-23: beside a member that is down a member has left: blocked %q, %v", blocked, err)
		}
		if err != nil || !strings.Contains(blocked, "1 of 2 members would be healthy") {
			return fmt.Errorf("R-MA-23: beside a member that is down: blocked %q, error %w", blocked, err)
		}
		return nil
	}))
	s.store.Edit(host("c0").Key, func(m *machine.Machine) { m.Spec.Decommission = true })
	for range 3 {
		s.pass(host("c0").Key)
	}
	m, err := s.store.Live(t.Context(), host("c0").Key)
	if err != nil || m.Release != nil && m.Release.Begun || s.left > 0 {
		t.Errorf("R-MA-25: beside a member that is down its end has begun: %+v, %v", m.Release, err)
	}
	s.start("c2")
	s.settled("c0=true c1=true c2=true")
	s.until("c0", "leaving", func(machine.Machine) bool { return s.left > 0 })
	asked := s.asked
	s.until("c0", "retired", func(m machine.Machine) bool { return m.Phase == machine.PhaseRetired })
	if s.asked != asked {
		t.Errorf("R-MA-23: the gates were asked %d times after the member had left", s.asked-asked)
	}
	s.settled("c1=true c2=true")
	if done, _, err := s.client.Leave(t.Context(), host("c0")); !done || err != nil {
		t.Errorf("R-MA-23: who has left is not done: %t, %v", done, err)
	}
}
