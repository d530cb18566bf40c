// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/examples/internal/agent/render"
)

const (
	// DropIn is the one file that is written in --config-dir. What a node wants to be stronger has a name behind it.
	DropIn = "90-belay.conf"
	// KubeadmConfig is the file that kubeadm writes at each upgrade. Nothing is ever rendered there.
	KubeadmConfig = "/var/lib/kubelet/config.yaml"
	// dropInEnd is how the names of files end that a kubelet reads from such a directory.
	dropInEnd = ".conf"
	// maxDropIns bounds how many there are.
	maxDropIns = 100
)

type options = configsync.Options[*kubelet.Config]

// Target is the file that a config is rendered to; to is that of --render.
func (l *Local) Target(to string) string {
	if l.ConfigDir != "" {
		return filepath.Join(l.ConfigDir, DropIn)
	}
	return to
}

// NotOurs are the files that are never rendered to.
func (l *Local) NotOurs() []string {
	files := []string{KubeadmConfig}
	if l.InitConfig != "" {
		files = append(files, l.InitConfig, filepath.Join(l.InitConfig, l.Key))
	}
	return files
}

// Place is [Local.Target] with [Local.NotOurs].
func (l *Local) Place(to string) render.Place {
	return render.Place{Path: l.Target(to), NotOurs: l.NotOurs()}
}

// around gives what this node lays around every config; nil where that is nothing.
func (l *Local) around() func() (layers.Stack, error) {
	switch {
	case l.ConfigDir != "":
		return l.stack // others write these files: they are read anew each time
	case l.NodeConfig != "":
		return sync.OnceValues(func() (layers.Stack, error) { // what was judged is what is rendered
			doc, err := l.overlay()
			return layers.Stack{Node: doc}, err
		})
	}
	return nil
}

// overlay reads the config of this node alone.
func (l *Local) overlay() ([]byte, error) {
	doc, err := readDocument(l.NodeConfig)
	if err == nil {
		_, err = layers.Merge(layers.Layer{Name: layers.Node, Doc: doc})
	}
	return doc, err
}

// stack reads what a kubelet merges with the agent's drop-in: the file of its --config and what lies in front, and what
// lies behind.
func (l *Local) stack() (layers.Stack, error) {
	if l.InitConfig == "" {
		return layers.Stack{}, nil // there is nothing to merge with, as for check without it
	}
	o, err := l.beneath()
	if err != nil {
		return layers.Stack{}, err
	}
	_, above, err := dropIns(l.ConfigDir)
	if err != nil || len(above) == 0 {
		return layers.Stack{Init: []byte(o.Data[l.Key])}, err
	}
	m, err := layers.Merge(above...)
	return layers.Stack{Init: []byte(o.Data[l.Key]), Node: m.Doc}, err
}

// beneath is the local config where there are drop-ins: the init config, with what a kubelet adds to it before it
// merges, and those drop-ins laid over it that the agent's own would be stronger than.
func (l *Local) beneath() (configsync.Object, error) {
	o, err := file.Init(l.InitConfig, l.Key)
	if err != nil {
		return o, err
	}
	below, _, err := dropIns(l.ConfigDir)
	if err != nil || len(o.Data[l.Key]) == 0 {
		return o, err
	}
	own, filled, err := kubelet.Lenient([]byte(o.Data[l.Key]))
	if err != nil {
		return o, fmt.Errorf("layer %q: %w", layers.Init, err)
	}
	all := []layers.Layer{{Name: layers.Init, Doc: own}, {Name: "defaults of the kubelet", Doc: filled}}
	m, err := layers.Merge(append(all, below...)...)
	o.Data[l.Key] = string(m.Doc)
	return o, err
}

// dropIns reads a directory as a kubelet does: all of it, in the order of the names, what ends in .conf. The agent's
// own file is left out.
func dropIns(dir string) (below, above []layers.Layer, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || filepath.Ext(path) != dropInEnd:
			return nil
		case len(below)+len(above) == maxDropIns:
			return fmt.Errorf("it has more than %d files", maxDropIns)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == DropIn {
			return err
		}
		doc, err := readDocument(path)
		if err == nil {
			doc, _, err = kubelet.Lenient(doc)
		}
		if err != nil {
			return fmt.Errorf("file %q: %w", name, err)
		}
		layer := layers.Layer{Name: "drop-in " + name, Doc: doc}
		if top, _, _ := strings.Cut(name, string(filepath.Separator)); cmp.Less(top, DropIn) {
			below = append(below, layer)
		} else {
			above = append(above, layer)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(dir); errors.Is(gone, fs.ErrNotExist) {
			return nil, nil, nil
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the drop-ins in %q: %w", dir, err)
	}
	return below, above, nil
}

// validateTarget checks where the config in use goes: the one file, or a directory of drop-ins.
func (p *problems) validateTarget(l *Local, to string) {
	if l.ConfigDir == "" {
		p.need(filepath.IsAbs(to), "render", to, "must be the absolute path of the file that the child reads, such as /run/belay/kubelet.conf")
		p.target(l, "render", to)
		return
	}
	p.need(to == "", "render", to, "must be empty with --config-dir: the drop-in is all that is written")
	p.need(filepath.IsAbs(l.ConfigDir), "config-dir", l.ConfigDir, "must be the absolute path of the kubelet's --config-dir, such as /etc/kubernetes/kubelet.conf.d")
	info, err := os.Lstat(l.ConfigDir)
	p.need(err != nil || info.IsDir(), "config-dir", l.ConfigDir, "must be a directory itself: a kubelet reads nothing where it is a link or a file")
	p.target(l, "config-dir", l.ConfigDir)
}

// target checks a place that the agent writes to.
func (p *problems) target(l *Local, flag, value string) {
	state := filepath.Clean(l.StateDir) + string(filepath.Separator)
	p.need(l.StateDir == "" || !strings.HasPrefix(filepath.Clean(value)+string(filepath.Separator), state), flag, value,
		"must not lie in --state-dir, which belongs to the agent alone")
	err := render.Check(l.Target(value), l.NotOurs()...)
	p.need(err == nil || value == "", flag, value, fmt.Sprintf("must not be a file that others write: %v", err))
}
