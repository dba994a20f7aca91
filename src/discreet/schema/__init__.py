"""What is public: features, classes and cells; drafts of schemas, columns from columns."""
