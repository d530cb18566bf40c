// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// An Inventory is what a [Server] holds and what was asked of it.
type Inventory struct {
	// Instances are those that are not retained, Retained those that are.
	Instances int `json:"instances"`
	Retained  int `json:"retained"`
	// Disks are counted in the state directory.
	Disks int `json:"disks"`
	// UsedTokens are those that no instance can have any more.
	UsedTokens int `json:"usedTokens"`
	// Calls counts the calls of the provider by method since the server started, those that failed included.
	Calls map[string]int64 `json:"calls"`
}

// A Host is an instance as its hardware knows it: what a test needs to make the Node that the instance would make of itself.
type Host struct {
	provider.Instance
	Config Config `json:"config"`
	// Desired has no Config.
	Desired provider.Desired `json:"desired"`
	// Joins means that its Node would come, once State is Running.
	Joins bool `json:"joins"`
	// Boots is how often it was started.
	Boots int `json:"boots"`
	// Endpoint is that of its Join, and Bootstrap has the SHA-256 of each value, in hex.
	Endpoint  string            `json:"endpoint,omitempty"`
	Bootstrap map[string]string `json:"bootstrap,omitempty"`
}

// maxData bounds what is written on a disk.
const maxData = 64 << 10

func (s *Server) adminRoutes() {
	s.mux.HandleFunc("POST /faults", s.addFault)
	s.mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.faults.left(s.now())) })
	s.mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		s.faults.clear()
		reply(w, http.StatusOK, nothing{})
	})
	s.mux.HandleFunc("GET /inventory", answer(s.inventory))
	s.mux.HandleFunc("GET /instances", answer(s.hosts))
	s.mux.HandleFunc("DELETE /instances/{token}", answer(s.lose))
	s.mux.HandleFunc("GET /disks/{id}", answer(func(r *http.Request) ([]byte, error) { return s.readDisk(r.PathValue("id")) }))
	s.mux.HandleFunc("PUT /disks/{id}", answer(s.writeDisk))
}

// answer serves what has no body.
func answer[A any](do func(*http.Request) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := do(r)
		if err != nil {
			replyError(w, err)
			return
		}
		reply(w, http.StatusOK, a)
	}
}

func (s *Server) addFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	err := readBody(w, r, &f)
	if err == nil {
		err = f.check()
	}
	if kills := f.Kind == KillBefore || f.Kind == KillAfter || f.Kind == KillWrite; err == nil && kills && s.kill == nil {
		err = invalid("kind %q: this server can't be killed", f.Kind)
	}
	if err == nil && f.Kind == StaleList {
		err = s.store.settle(r.Context(), s.now())
	}
	if err == nil {
		var ends time.Time
		if f.Kind == StaleList && f.Delay > 0 {
			ends = s.now().Add(f.Delay)
		}
		err = s.faults.add(f, s.views(s.now()), ends)
	}
	if err != nil {
		replyError(w, err)
		return
	}
	reply(w, http.StatusOK, nothing{})
}

func (s *Server) inventory(r *http.Request) (Inventory, error) {
	if err := s.store.settle(r.Context(), s.now()); err != nil {
		return Inventory{}, err
	}
	disks, err := s.store.files.names(diskDir, false)
	i := Inventory{Disks: len(disks), UsedTokens: s.store.usedUp()}
	for _, r := range s.store.all() {
		if r.Phase == retained {
			i.Retained++
		} else {
			i.Instances++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i.Calls = maps.Clone(s.calls)
	return i, err
}

func (s *Server) hosts(r *http.Request) ([]Host, error) {
	now := s.now()
	if err := s.store.settle(r.Context(), now); err != nil {
		return nil, err
	}
	hosts := []Host{}
	for _, r := range s.store.all() {
		hosts = append(hosts, Host{
			Instance: r.instance(now), Config: r.Config, Desired: r.Desired, Joins: r.Config.joins(), Boots: r.Boots, Endpoint: r.Endpoint, Bootstrap: r.Bootstrap,
		})
	}
	return hosts, nil
}

// lose destroys an instance behind everybody's back.
func (s *Server) lose(r *http.Request) (nothing, error) {
	rec, unlock, err := s.hold(r.Context(), provider.Ref{Token: r.PathValue("token")})
	if err != nil {
		return nothing{}, err
	}
	defer unlock()
	return nothing{}, s.store.destroy(rec)
}

// diskOf finds the instance that a disk belongs to.
func (s *Server) diskOf(id string) (record, disk, error) {
	for _, r := range s.store.all() {
		if i := slices.IndexFunc(r.Disks, func(d disk) bool { return d.ID == id }); i >= 0 {
			return r, r.Disks[i], nil
		}
	}
	return record{}, disk{}, provider.Errorf(provider.NotFound, "there is no disk %.100q", id)
}

func (s *Server) readDisk(id string) ([]byte, error) {
	if _, _, err := s.diskOf(id); err != nil {
		return nil, err
	}
	var f diskFile
	err := s.store.files.read(diskDir, id, &f)
	return f.Data, err
}

func (s *Server) writeDisk(r *http.Request) (nothing, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxData+1))
	if err != nil || len(data) > maxData {
		return nothing{}, invalid("what is to be written has more than %d bytes (error: %w)", maxData, err)
	}
	rec, d, err := s.diskOf(r.PathValue("id"))
	if err != nil {
		return nothing{}, err
	}
	unlock, err := s.store.locks.lock(r.Context(), rec.Token)
	if err != nil {
		return nothing{}, err
	}
	defer unlock()
	if now, _, err := s.diskOf(d.ID); err != nil || now.Token != rec.Token {
		return nothing{}, provider.Errorf(provider.NotFound, "disk %q has just left instance %q", d.ID, rec.Token)
	}
	return nothing{}, s.store.wrote(s.store.files.write(diskDir, d.ID, diskFile{d, data}), func() {})
}
