// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package belay

import "github.com/belayproject/belay/internal/option"

// An OptionError is the error of every constructor and method of this library whose arguments are missing or cannot be
// used. It has all problems of the call at once: Call is the function, such as "drain.New"; Missing are the arguments
// and fields that are required and nil or empty, such as "Options.Cache"; Problems are sentences, each with what would
// be right. Where a package has a sentinel error for it, the OptionError wraps that. Ask for it with [errors.As].
type OptionError = option.Error
