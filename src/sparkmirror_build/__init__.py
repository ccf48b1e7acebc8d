"""What builds sparkmirror: compiles the hot modules. No part of the installed package."""
