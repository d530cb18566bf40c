// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// EtcdClient returns the URL of etcd and a client that it trusts, without a timeout: for an observer that depends on no API server. Its JSON gateway
// is on.
func (e *Env) EtcdClient() (url string, client *http.Client) {
	pool := x509.NewCertPool()
	pool.AddCert(e.pki.etcd.cert)
	return "https://" + address(e.ports[Etcd]), &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{e.etcdClient}},
	}}
}
