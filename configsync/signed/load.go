// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxKeys is the most keys of a directory, maxKeyFile the most bytes of a file.
const (
	maxKeys    = 64
	maxKeyFile = 16 << 10
)

// Load reads every file of a directory whose name ends in .pem: a PEM block of type PUBLIC KEY with an Ed25519 key. The name without the
// ending is the key's ID. Other files, and those that begin with a dot, are left alone. A file that is not right is an error that names it, and so is
// a directory or a file that others than its owner may write to: a node must not trust fewer or more keys than it was given.
func Load(dir string) (Keys, error) {
	keys, err := load(dir)
	if err != nil {
		return Keys{}, fmt.Errorf("reading trusted keys from %q: %w", dir, err)
	}
	return NewKeys(keys)
}

func load(dir string) (map[string]ed25519.PublicKey, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	if err := ownersOnly(d); err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".pem")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		if len(keys) == maxKeys {
			return nil, fmt.Errorf("it has more than %d keys", maxKeys)
		}
		if keys[id], err = readKey(root, name); err != nil {
			return nil, fmt.Errorf("file %q: %w", filepath.Base(name), err)
		}
	}
	return keys, nil
}

// ownersOnly refuses what others may change.
func ownersOnly(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("mode %s: must not be writable by group or others", info.Mode())
	}
	return err
}

func readKey(root *os.Root, name string) (ed25519.PublicKey, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("must be a regular file"))
	}
	if err := ownersOnly(f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("must have at most %d bytes", maxKeyFile)
	}
	return parseKey(text)
}

// parseKey reads one public key from PEM, as openssl pkey -pubout writes it.
func parseKey(text []byte) (ed25519.PublicKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("must hold one PEM block of type PUBLIC KEY and nothing behind it")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := parsed.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, errors.New("must be an Ed25519 public key")
	}
	return key, nil
}

// ParsePrivateKey reads one private key from PEM, as openssl genpkey -algorithm ed25519 writes it, for [Sign].
func ParsePrivateKey(text []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("must hold one PEM block of type PRIVATE KEY and nothing behind it")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("must be an Ed25519 private key")
	}
	return key, nil
}
