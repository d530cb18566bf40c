// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The certificates are valid from a little before the start, for clocks that step back, until long after the last
// test.
const (
	certBefore = time.Hour
	certAfter  = 30 * 24 * time.Hour
)

// authority signs the certificates of one control plane. It is immutable and safe for concurrent use.
type authority struct {
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
	keyPEM  []byte
}

// keyPair is a certificate and its key, in PEM.
type keyPair struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	template := certTemplate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the authority %q: %w", name, err)
	}
	return &authority{cert: cert, key: key, certPEM: encodePEM("CERTIFICATE", der), keyPEM: keyPEM}, nil
}

// client issues a certificate that an API server takes for the user and the groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template := certTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server issues a certificate for a server on this machine. The names are those by which clients call it besides
// localhost and 127.0.0.1.
func (a *authority) server(names ...string) (keyPair, error) {
	template := certTemplate(pkix.Name{CommonName: "localhost"})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = append([]string{"localhost"}, names...)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("signing the certificate of %q: %w", template.Subject.CommonName, err)
	}
	return keyPair{cert: encodePEM("CERTIFICATE", der), key: keyPEM}, nil
}

func certTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-certBefore), NotAfter: now.Add(certAfter),
	}
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return key, encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// pki holds the authorities of a control plane and the directory with the files that its servers read.
type pki struct {
	dir     string
	cluster *authority // clients of the API server, and all servers but etcd
	etcd    *authority // apart, or every user of the cluster could read and write its storage
}

// newPKI generates everything the servers need and writes it to dir.
func newPKI(dir string) (*pki, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of certificates: %w", err)
	}
	p := &pki{dir: dir}
	var err error
	if p.cluster, err = newAuthority("belay-cluster"); err != nil {
		return nil, err
	}
	if p.etcd, err = newAuthority("belay-etcd"); err != nil {
		return nil, err
	}
	return p, p.writeAll()
}

func (p *pki) writeAll() error {
	issue := map[string]func() (keyPair, error){
		"etcd":             func() (keyPair, error) { return p.etcd.server() },
		"etcd-client":      func() (keyPair, error) { return p.etcd.client("kube-apiserver") },
		"server":           func() (keyPair, error) { return p.cluster.server("kubernetes", "kubernetes.default.svc") },
		"kubelet-client":   func() (keyPair, error) { return p.cluster.client("kube-apiserver", "system:masters") },
		"service-accounts": func() (keyPair, error) { return p.cluster.server() }, // its public and private key are used
		"cluster-ca":       func() (keyPair, error) { return keyPair{p.cluster.certPEM, p.cluster.keyPEM}, nil },
		"etcd-ca":          func() (keyPair, error) { return keyPair{p.etcd.certPEM, p.etcd.keyPEM}, nil },
	}
	for name, pair := range issue {
		kp, err := pair()
		if err != nil {
			return err
		}
		if err := p.write(name, kp); err != nil {
			return err
		}
	}
	return nil
}

func (p *pki) write(name string, pair keyPair) error {
	return writePair(p.cert(name), p.key(name), pair)
}

func writePair(certFile, keyFile string, pair keyPair) error {
	for path, data := range map[string][]byte{certFile: pair.cert, keyFile: pair.key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("writing a certificate: %w", err)
		}
	}
	return nil
}

func (p *pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p *pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }
