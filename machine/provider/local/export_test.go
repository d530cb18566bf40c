// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import "golang.org/x/sys/unix"

// Steps has a function called at each step of all calls.
func (p *Provider) Steps(at func(string)) { p.core.step = at }

// Refuse has signals fail as long as the function says so.
func (p *Provider) Refuse(refuse func(unix.Signal) error) {
	p.core.signal = func(m member, sig unix.Signal) error {
		if err := refuse(sig); err != nil {
			return err
		}
		return send(m, sig)
	}
}

// Confined reports whether machines have namespaces here, and why not.
func (p *Provider) Confined() error { return p.core.unshared }

// Marked is for fuzzing.
func Marked(environ []byte, token, dir string) bool { return marked(environ, token, dir) }

// ParseStat is for fuzzing.
func ParseStat(data []byte) (state byte, session int, start uint64, err error) {
	s, err := parseStat(data)
	return s.state, s.session, s.start, err
}

// ParseMounts is for fuzzing.
func ParseMounts(data []byte, dir string) []string { return parseMounts(data, dir) }

// ParseRecord returns what a record is written as again.
func ParseRecord(data []byte, token string) ([]byte, error) {
	r, err := parse(data, token)
	if err != nil {
		return nil, err
	}
	return r.encode()
}
