"""Pages and pictures for people: HTML that is readable offline, SVG and PNG."""
