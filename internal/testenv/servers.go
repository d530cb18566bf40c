// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/belayproject/belay/internal/testenv/binaries"
)

// Component names a server of the control plane.
type Component = binaries.Name

// The servers. Etcd and APIServer are always started, the others where [Options.With] names them.
const (
	Etcd              = binaries.Etcd
	APIServer         = binaries.APIServer
	ControllerManager = binaries.ControllerManager
	Scheduler         = binaries.Scheduler
	Kwok              = binaries.Kwok
)

// probeTimeout bounds one question for readiness.
const probeTimeout = 2 * time.Second

// server is what differs from one component to the next.
type server struct {
	user  string // whom it is to the API server; empty where it is no client of it
	args  func(e *Env, port int, kubeconfig string) []string
	probe func(e *Env, port int) probe
}

// probe is a URL that answers 200 once the server is ready, and how to ask.
type probe struct {
	url    string
	client *http.Client
}

func servers() map[Component]server {
	return map[Component]server{
		Etcd:              {args: etcdArgs, probe: etcdProbe},
		APIServer:         {args: apiServerArgs, probe: apiServerProbe},
		ControllerManager: {user: "system:kube-controller-manager", args: controllerManagerArgs, probe: healthzProbe},
		Scheduler:         {user: "system:kube-scheduler", args: schedulerArgs, probe: healthzProbe},
		// kwok plays every node, so it has the rights of an administrator, as in its own deployment.
		Kwok: {user: "kwok", args: kwokArgs, probe: kwokProbe},
	}
}

// etcdArgs gives up durability: the data never outlives the test, and fsync is most of etcd's time on a slow disk.
func etcdArgs(e *Env, port int, _ string) []string {
	peer := strconv.Itoa(e.peerPort)
	return []string{
		"--data-dir=" + filepath.Join(e.Dir(), "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=https://" + address(port), "--advertise-client-urls=https://" + address(port),
		"--cert-file=" + e.pki.cert("etcd"), "--key-file=" + e.pki.key("etcd"),
		"--client-cert-auth", "--trusted-ca-file=" + e.pki.cert("etcd-ca"),
		"--listen-peer-urls=http://127.0.0.1:" + peer, "--initial-advertise-peer-urls=http://127.0.0.1:" + peer,
		"--initial-cluster=default=http://127.0.0.1:" + peer,
	}
}

func etcdProbe(e *Env, port int) probe {
	return probe{"https://" + address(port) + "/health", probeClient(e.pki.etcd, e.etcdClient)}
}

// apiServerArgs keeps the server's defaults where they do not cost seconds at the start: what tests see is what
// users run. The kubernetes Service gets no endpoints, since those may not be on loopback.
func apiServerArgs(e *Env, port int, _ string) []string {
	args := []string{
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(port), "--etcd-servers=https://" + address(e.ports[Etcd]),
		"--etcd-cafile=" + e.pki.cert("etcd-ca"),
		"--etcd-certfile=" + e.pki.cert("etcd-client"), "--etcd-keyfile=" + e.pki.key("etcd-client"),
		"--tls-cert-file=" + e.pki.cert("server"), "--tls-private-key-file=" + e.pki.key("server"),
		"--client-ca-file=" + e.pki.cert("cluster-ca"),
		"--kubelet-certificate-authority=" + e.pki.cert("cluster-ca"),
		"--kubelet-client-certificate=" + e.pki.cert("kubelet-client"),
		"--kubelet-client-key=" + e.pki.key("kubelet-client"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + e.pki.cert("service-accounts"),
		"--service-account-signing-key-file=" + e.pki.key("service-accounts"),
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
	}
	if e.options.AuditPolicy != "" { // whoever counts requests reads it from its beginning: it is not rotated
		args = append(args, "--audit-policy-file="+filepath.Join(e.Dir(), auditPolicyFile), "--audit-log-path="+e.AuditLog(), "--audit-log-maxsize=8192")
	}
	return args
}

func apiServerProbe(e *Env, port int) probe {
	return probe{"https://" + address(port) + "/readyz", probeClient(e.pki.cluster, e.admin)}
}

func controllerManagerArgs(e *Env, port int, kubeconfig string) []string {
	return append(secondaryArgs(e, port, kubeconfig),
		"--use-service-account-credentials", "--root-ca-file="+e.pki.cert("cluster-ca"),
		"--service-account-private-key-file="+e.pki.key("service-accounts"),
		"--cluster-signing-cert-file="+e.pki.cert("cluster-ca"), "--cluster-signing-key-file="+e.pki.key("cluster-ca"),
	)
}

func schedulerArgs(e *Env, port int, kubeconfig string) []string {
	return secondaryArgs(e, port, kubeconfig)
}

// secondaryArgs is what the controller manager and the scheduler share. There is one of each, so none waits for
// a lease of a killed predecessor.
func secondaryArgs(e *Env, port int, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port), "--leader-elect=false",
		"--tls-cert-file=" + e.pki.cert("server"), "--tls-private-key-file=" + e.pki.key("server"),
	}
}

func healthzProbe(e *Env, port int) probe {
	return probe{"https://" + address(port) + "/healthz", probeClient(e.pki.cluster, e.admin)}
}

// kwokArgs makes it play the nodes that ask for it by [KwokNode], so that others can be played by the test.
func kwokArgs(e *Env, port int, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--config=" + e.programs.KwokStages(), "--server-address=" + address(port),
		"--manage-nodes-with-annotation-selector=" + kwokAnnotation + "=fake",
	}
}

func kwokProbe(_ *Env, port int) probe {
	return probe{"http://" + address(port) + "/healthz", &http.Client{Timeout: probeTimeout}}
}

// probeClient trusts one authority and shows a client certificate. It keeps no connection, so that nothing is left
// behind when the server is killed.
func probeClient(ca *authority, pair tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
		},
	}
}

func (p probe) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", p.url, response.Status, body)
	}
	return nil
}
