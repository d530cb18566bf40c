// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// files are what a directory says.
type files struct {
	machines    map[machine.Key]machine.Machine
	sets        map[machine.Key]machine.Set
	deployments map[machine.Key]machine.Deployment
	nodes       map[string]*corev1.Node
	volumes     []corev1.PersistentVolume
	pods        []corev1.Pod
	members     []machine.Member
	// known means that there is a document about members.
	known bool
}

// memberFile is the document about members.
type memberFile struct {
	metav1.TypeMeta `json:",inline"`
	Members         []struct {
		Name    string `json:"name"`
		Machine string `json:"machine"`
		Healthy bool   `json:"healthy"`
		Learner bool   `json:"learner"`
	} `json:"members"`
}

const memberVersion = "machinegate.belay.dev/v1"

// read reads all files of a directory.
func read(dir string) (*files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	f := &files{
		machines: map[machine.Key]machine.Machine{}, sets: map[machine.Key]machine.Set{}, deployments: map[machine.Key]machine.Deployment{},
		nodes: map[string]*corev1.Node{},
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := f.file(path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	return f, errors.Join(errs...)
}

// file reads the documents of one.
func (f *files) file(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for n := 1; ; n++ {
		var raw json.RawMessage
		switch err := documents.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("document %d: %w", n, err)
		case len(raw) == 0 || string(raw) == "null":
			continue
		}
		if err := f.object(raw); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// object takes one object, or a List of them.
func (f *files) object(raw []byte) error {
	var o struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return fmt.Errorf("it is no object: %w", err)
	}
	if strings.HasSuffix(o.Kind, "List") {
		for i, item := range o.Items {
			if err := f.object(item); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	switch o.APIVersion {
	case v1alpha1.GroupVersion.String():
		return f.ours(o.Kind, raw)
	case memberVersion:
		return f.whoIsMember(o.Kind, raw)
	case "v1":
		return f.cores(o.Kind, raw)
	case "":
		return errors.New("it has no apiVersion")
	}
	return nil
}

func (f *files) ours(kind string, raw []byte) error {
	switch kind {
	case v1alpha1.MachineKind:
		return take(raw, &v1alpha1.Machine{}, (*v1alpha1.Machine).Core, f.machines, func(m *machine.Machine) *machine.Key { return &m.Key })
	case v1alpha1.MachineSetKind:
		return take(raw, &v1alpha1.MachineSet{}, (*v1alpha1.MachineSet).Core, f.sets, func(s *machine.Set) *machine.Key { return &s.Key })
	case v1alpha1.MachineDeploymentKind:
		return take(raw, &v1alpha1.MachineDeployment{}, (*v1alpha1.MachineDeployment).Core, f.deployments, func(d *machine.Deployment) *machine.Key { return &d.Key })
	case v1alpha1.MachineHealthCheckKind:
		return nil // it ends what is broken, by a budget
	}
	return fmt.Errorf("apiVersion %q has no kind %q that this command knows", v1alpha1.GroupVersion, kind)
}

// take decodes strictly: a field that is misspelt may be the one that the change is about.
func take[O, C any](raw []byte, o *O, core func(*O) (C, error), into map[machine.Key]C, key func(*C) *machine.Key) error {
	if err := configsync.DecodeStrict(raw, o); err != nil {
		return err
	}
	c, err := core(o)
	if err != nil {
		return err
	}
	k := key(&c)
	if k.Namespace == "" {
		k.Namespace = metav1.NamespaceDefault
	}
	if k.Name == "" {
		return errors.New("metadata.name is empty")
	}
	if _, twice := into[*k]; twice {
		return fmt.Errorf("%q is there twice", k)
	}
	into[*k] = c
	return nil
}

// cores reads what other machines know of a machine. Fields that this version does not know don't matter.
func (f *files) cores(kind string, raw []byte) error {
	switch kind {
	case "Node":
		n := &corev1.Node{}
		err := json.Unmarshal(raw, n)
		f.nodes[n.Name] = n
		return err
	case "PersistentVolume":
		var v corev1.PersistentVolume
		err := json.Unmarshal(raw, &v)
		f.volumes = append(f.volumes, v)
		return err
	case "Pod":
		var p corev1.Pod
		err := json.Unmarshal(raw, &p)
		f.pods = append(f.pods, p)
		return err
	}
	return nil
}

func (f *files) whoIsMember(kind string, raw []byte) error {
	var all memberFile
	if kind != "Members" {
		return fmt.Errorf("apiVersion %q, kind %q: want the kind Members", memberVersion, kind)
	}
	if f.known {
		return errors.New("there are two documents of the kind Members")
	}
	if err := configsync.DecodeStrict(raw, &all); err != nil {
		return err
	}
	f.known = true
	for i, m := range all.Members {
		namespace, name, ok := strings.Cut(m.Machine, "/")
		if !ok && m.Machine != "" {
			return fmt.Errorf("members[%d].machine %q: want namespace/name, or nothing if it is not known", i, m.Machine)
		}
		f.members = append(f.members, machine.Member{Name: m.Name, Machine: machine.Key{Namespace: namespace, Name: name}, Healthy: m.Healthy, Learner: m.Learner})
	}
	return nil
}
