// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinenode

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/machine/provider"
)

// Names of variables that a machine is given by its config.
const (
	// RepositoryVariable names the directory with programs: kubelet/VERSION, NAME/VERSION for each container runtime, and images.
	RepositoryVariable = "MACHINENODE_REPOSITORY"
	// CgroupVariable names the cgroup of the machine's pods.
	CgroupVariable = "MACHINENODE_CGROUP"
)

// Places in the machine's own file system.
const (
	home     = "/run/machine" // the machine's directory
	programs = home + "/programs"
	socket   = "/run/containerd/containerd.sock"
	library  = "lib" // the disk of the machine
)

// A system is a machine as its first process sees it.
type system struct {
	dir, repository, cgroup string
	token, providerID       string
	versions                provider.Versions
	// needed are the processes without which the machine is broken, by their number.
	needed map[int]string
}

// Boot is the first process of a machine: it installs the kubelet and the container runtime of the versions that machine.json has, runs them, and
// returns when it is told to end by SIGTERM, or when one of the two has ended, which is an error. By then nothing of the machine runs and its
// cgroups are gone. All that it mounts is in the machine's own mount namespace: what a kubelet has at fixed places of a host is on the machine's
// disk, or ends with it.
func Boot() error {
	if os.Getpid() != 1 {
		return errors.New("boot: this process is not the first of a PID namespace, and all others would be killed in the end")
	}
	stop, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	signal.Notify(child, syscall.SIGCHLD)
	s := &system{
		dir: os.Getenv("BELAY_MACHINE_DIR"), token: os.Getenv("BELAY_MACHINE"), providerID: os.Getenv("BELAY_PROVIDER_ID"),
		repository: os.Getenv(RepositoryVariable), cgroup: os.Getenv(CgroupVariable), needed: map[int]string{},
	}
	err := s.start()
	if err == nil {
		err = s.run(stop, child)
	}
	return errors.Join(err, s.end())
}

func (s *system) start() error {
	for _, step := range []func() error{s.read, s.install, s.isolate, s.startRuntime, s.importImages, s.startKubelet} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// read finds out which versions are wanted.
func (s *system) read() error {
	data, err := os.ReadFile(filepath.Join(s.dir, "machine.json"))
	var settings struct {
		Versions provider.Versions `json:"versions"`
	}
	if err == nil {
		err = json.Unmarshal(data, &settings)
	}
	s.versions = settings.Versions
	return err
}

// install takes the programs into the machine's directory, as those of an earlier version may still be in use elsewhere.
func (s *system) install() error {
	to := filepath.Join(s.dir, "programs")
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)); err != nil {
		return err
	}
	for _, dir := range []string{
		filepath.Join("kubelet", s.versions.Kubelet), filepath.Join(s.versions.Runtime.Name, s.versions.Runtime.Version), "images",
	} {
		entries, err := os.ReadDir(filepath.Join(s.repository, dir))
		if err != nil {
			return fmt.Errorf("installing %q: %w", dir, err)
		}
		for _, e := range entries {
			if err := installFile(filepath.Join(s.repository, dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return fmt.Errorf("installing %q: %w", dir, err)
			}
		}
	}
	return nil
}

func installFile(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from) // on another file system
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}

// isolate gives the machine a /var/lib, which is its disk, a /run and a /var/log of its own, and the cgroup of its pods.
func (s *system) isolate() error {
	here, err := openDir(s.dir)
	if err != nil {
		return err
	}
	disk, err := openDir(filepath.Join(s.dir, "data", library))
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(here.Close(), disk.Close()) }() // only read
	// The directories may lie beneath what is mounted over: the descriptors still name them.
	for _, m := range []struct{ from, to, kind string }{
		{"machine", "/run", "tmpfs"}, {"machine", "/var/log", "tmpfs"},
		{descriptor(disk), "/var/lib", ""}, {descriptor(here), home, ""},
	} {
		if err := os.MkdirAll(m.to, 0o755); err != nil {
			return err
		}
		flags := uintptr(0)
		if m.kind == "" {
			flags = unix.MS_BIND
		}
		if err := unix.Mount(m.from, m.to, m.kind, flags, ""); err != nil {
			return fmt.Errorf("mounting %q: %w", m.to, err)
		}
	}
	return nodetier.MakeCgroup(s.cgroup)
}

func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
}

func descriptor(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// startRuntime starts containerd and waits until it answers. Each version has a root of its own: an older one can't read that of a newer one, and a
// machine whose runtime is exchanged was emptied.
func (s *system) startRuntime() error {
	err := s.spawn("containerd", "--config", home+"/files/containerd.toml", "--root", "/var/lib/containerd-"+s.versions.Runtime.Version)
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		if err = ctr("version"); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// importImages gives the runtime the images of the repository: nothing is pulled.
func (s *system) importImages() error {
	images, err := filepath.Glob(programs + "/*.tar")
	for _, image := range images {
		err = errors.Join(err, ctr("images", "import", "--snapshotter", "native", image))
	}
	return err
}

func ctr(args ...string) error {
	out, err := exec.Command("ctr", append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running ctr %s: %w: %s", args[0], err, out)
	}
	return nil
}

// startKubelet starts the kubelet, which joins with what the bootstrap Secret has, the first time.
func (s *system) startKubelet() error {
	config, err := os.ReadFile(home + "/files/kubelet.yaml")
	if err != nil {
		return err
	}
	path := home + "/kubelet.yaml"
	if err := os.WriteFile(path, append(config, "\nproviderID: "+s.providerID+"\n"...), 0o600); err != nil {
		return err
	}
	return s.spawn("kubelet", "--config", path, "--hostname-override", s.token,
		"--kubeconfig", "/var/lib/kubelet/kubeconfig", "--bootstrap-kubeconfig", home+"/bootstrap/kubeconfig")
}

// spawn starts one of the installed programs, which finds its helpers beside it. It prints to the machine's console.
func (s *system) spawn(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(programs, program), args...)
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.needed[cmd.Process.Pid] = program
	return cmd.Process.Release() // run waits for it, as for every orphan
}
