// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"github.com/belayproject/belay/configsync"
)

// Facts are what was seen of a node. A part that is nil was not looked at, and is no finding; one with an error could
// not be.
type Facts struct {
	// Now is the wall clock of the node.
	Now time.Time
	// Settings are what is wrong with how the agent is configured, one error each.
	Settings []error
	// Source is the kind of source that the agent is told to use; empty or "none" for none.
	Source string
	// Baseline is the local config.
	Baseline Baseline

	// Dir is the state directory; nil where none is given, which switches dynamic config off.
	Dir *Dir
	// Running says that an agent serves the state directory. Nil: nobody asked.
	Running *bool
	// Child is what the running agent says of its child; nil where none runs.
	Child *Child
	// Explanation is what is on record and what the next start would do, and ExplainErr why that is not known.
	Explanation *configsync.Explanation
	ExplainErr  error
	// Proof is why what proves a config before it is adopted can't do that now; nil where nothing is known to be in the
	// way.
	Proof error

	Clock  *Clock
	Unit   *Unit
	Server *Server
}

// A Baseline is what is known of the local config.
type Baseline struct {
	// None says that no local config is named.
	None bool
	// Ignored names the files of the init directory that are not read.
	Ignored []string
}

// A Dir is a state directory.
type Dir struct {
	Path string
	// Err is why it could not be looked at; fs.ErrNotExist where it is not there.
	Err error
	// NotDir says that it is something else.
	NotDir bool
	// Mode are its permission bits.
	Mode uint32
	// Foreign says that it belongs to another user than this process's.
	Foreign bool
	// FileSystem names what it lies on, such as "ext4"; empty where that is not known.
	FileSystem string
}

// A Clock is that of the machine.
type Clock struct {
	// Hardware says that there is one that runs while the machine is off.
	Hardware bool
	// Synchronized says that the kernel's clock follows a server. Known says that this could be found out.
	Synchronized, Known bool
}

// A Unit is that of the service manager which starts the agent.
type Unit struct {
	Name string
	// Err is why it could not be looked at.
	Err error
	// Loaded says that there is such a unit, Enabled that it comes with a boot.
	Loaded, Enabled bool
	// Restart is its restart policy, as systemd spells it.
	Restart string
	// Limited says that it is given up after some restarts.
	Limited bool
}

// A Server is the API server as this node's agent sees it.
type Server struct {
	// Err is why it gave no answer.
	Err error
	// Kind is the kind of source that was looked for there, as people know it, such as NodeConfig; NotServed says that the
	// server doesn't know that kind, Drops that it drops what is written to it.
	Kind      string
	NotServed bool
	Drops     []string
	// Absent says that the object of this node is not there, Awaited that a controller makes it when it has something to
	// say, Names that it names a config.
	Absent, Awaited, Names bool
	// Denied are the rights that the agent lacks, such as "get configmaps". Unasked is why that could not be found out.
	Denied  []string
	Unasked error
}
